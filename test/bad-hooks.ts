/** Hooks of a host that fail; an unhandled rejection fails the whole test run. */
export const badHooks: [what: string, hook: () => void][] = [
  [
    'throws',
    () => {
      throw new Error('secret of the hook')
    },
  ],
  [
    'rejects',
    async () => {
      throw new Error('secret of the hook')
    },
  ],
]

/** Resolves once the process would have complained about a rejection. */
export const flushPromises = () => new Promise((resolve) => setImmediate(resolve))
