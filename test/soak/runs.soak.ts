// The suite of agents at work with its full figures: thirty that start at once, ten that are adopted.
process.env.SIGNALBOX_STARTS = '30'
process.env.SIGNALBOX_ADOPTED = '10'
await import('../e2e/runs.test.ts')
