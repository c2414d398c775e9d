import fc from 'fast-check'

/** The same cases in every `npm test`; the soak, which sets SIGNALBOX_SEEDS, draws new ones, and a failure prints its seed. */
if (!process.env.SIGNALBOX_SEEDS) fc.configureGlobal({ seed: 1 })

export { fc }
