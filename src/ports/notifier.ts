/** How people are told outside of Signalbox. What fails is tried again by whoever asked. */
export interface Notifier {
  /** Runs a program without a shell, gives it the text, and waits for its end; rejects unless it ends well. */
  run(argv: string[], input: string, signal: AbortSignal): Promise<void>
  /** Posts JSON; rejects unless it is taken. `key` is the same at every attempt. */
  post(url: string, body: object, key: string, signal: AbortSignal): Promise<void>
}

declare module '../kernel/tool.ts' {
  interface Ports {
    notifier: Notifier
  }
}
