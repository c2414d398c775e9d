/**
 * The wall clock, but never back. Times at which something is due are stored: a clock that is set back an hour would put off by an hour what
 * is due in three seconds. Set back, this one goes on at half the speed of the monotonic clock until the wall clock has caught up with it.
 */
export function steady(wall: () => number, monotonic: () => number): () => number {
  let [time, at] = [wall(), monotonic()]
  return () => {
    const asked = monotonic()
    time = Math.max(wall(), time + (asked - at) / 2)
    at = asked
    return Math.floor(time)
  }
}

/** What time it is for the whole process: timestamps, and whether something is due. */
export const now = steady(
  () => Date.now(),
  () => performance.now(),
)
