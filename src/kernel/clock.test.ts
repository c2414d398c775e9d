import { describe, expect, test } from 'vitest'
import { steady } from './clock.ts'

describe('the clock', () => {
  let [wall, monotonic] = [0, 0]
  const pass = (ms: number) => {
    wall += ms
    monotonic += ms
  }
  const started = () => {
    ;[wall, monotonic] = [1_000_000, 500]
    return steady(
      () => wall,
      () => monotonic,
    )
  }

  test('[K34] it is the wall clock while that goes on, and when it goes forward', () => {
    const now = started()
    expect(now()).toBe(1_000_000)
    pass(10)
    expect(now()).toBe(1_000_010)
    wall += 3_600_000
    expect(now()).toBe(4_600_010)
  })

  test('[K34] set back an hour it never goes back: what is due in 3 s is due in 6, and in an hour or two it is the wall clock again', () => {
    const now = started()
    const due = now() + 3_000
    wall -= 3_600_000
    expect(now()).toBe(1_000_000)
    pass(5_990)
    expect(now()).toBeLessThan(due)
    pass(10)
    expect(now()).toBe(due)
    pass(2 * 3_600_000)
    expect(now()).toBe(wall)
  })

  test('[K34] asked often it goes as fast as asked seldom', () => {
    const now = started()
    wall -= 3_600_000
    for (let i = 0; i < 1_000; i++) {
      pass(0.1)
      now()
    }
    expect(now()).toBe(1_000_050)
  })
})
