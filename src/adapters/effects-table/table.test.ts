import { onTestFinished, test, vi } from 'vitest'
import { Connection } from '../../db/sqlite-connection.ts'
import { enqueue, openEffectApp, states } from '../../testing/effects.ts'
import { until } from '../../testing/signals.ts'

test('[X3] one whose back-off ends between two looks at the table is tried again all the same', async () => {
  const app = await openEffectApp()
  onTestFinished(() => app.close())
  const execute = Connection.prototype.executeQuery
  const looks = { asked: 0, late: false }
  vi.spyOn(Connection.prototype, 'executeQuery').mockImplementation(async function (this: Connection, query) {
    if (query.sql.includes('min(run_at)')) {
      looks.asked++
      if (looks.late) await longerThanTheBackOff()
    }
    return execute.call(this, query) as never
  })
  onTestFinished(() => void vi.restoreAllMocks())
  await enqueue(app, { name: 'a', fails: 1, holds: true })
  await app.world.began('a')
  await until(() => looks.asked > 0)
  looks.late = true
  app.world.letGo('a')
  await until(async () => (await states(app)).a === 'done')
})

/** Time is the point here: the question for the next one comes after the end of a back-off of 20 ms. */
function longerThanTheBackOff(): Promise<void> {
  return new Promise((resolve) => setTimeout(resolve, 100))
}
