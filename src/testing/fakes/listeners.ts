import type { Listeners } from '../../ports/listeners.ts'

/** Nobody listens but where a test says so: programs of this machine have no part in it. */
export class FakeListeners implements Listeners {
  readonly open = new Set<number>()

  async answering(ports: number[]) {
    return ports.find((port) => this.open.has(port))
  }
}
