/** Programs of this machine that wait for connections. */
export interface Listeners {
  /** The first of these ports on which somebody answers. Knocked at once; nobody is waited for. */
  answering(ports: number[]): Promise<number | undefined>
}

declare module '../kernel/tool.ts' {
  interface Ports {
    listeners: Listeners
  }
}
