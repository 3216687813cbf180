/** Runs test files in the worktree that it is started in, as often as its parent asks: a runner that stays costs a third of one a run. */
import { createVitest } from 'vitest/node'

const vitest = await createVitest('test', { watch: false, bail: 1, reporters: [{}] })

/** What failed first, or `undefined` when all passed. */
async function failureOf(tests) {
  // The failures of former runs would end this one before it begins.
  vitest.state.filesMap.clear()
  const { testModules, unhandledErrors } = await vitest.runTestSpecifications(
    await vitest.globTestSpecifications(tests),
  )
  for (const module of testModules) for (const failed of module.children.allTests('failed')) return failed.fullName
  // Those of suites are failures of their hooks.
  const parts = testModules.flatMap((module) => [module, ...module.children.allSuites()])
  const errors = [...parts.flatMap((part) => part.errors()), ...unhandledErrors]
  if (errors.length > 0) return `outside of a test: ${errors[0].message}`
  return testModules.some((module) => module.ok()) ? undefined : 'no test was run'
}

// Without tests: a file has changed, and no reply is expected.
process.on('message', async ({ tests, file }) => {
  vitest.invalidateFile(file)
  if (!tests) return
  try {
    process.send({ failure: await failureOf(tests) })
  } catch (error) {
    process.send({ failure: `the runner failed: ${error.message}` })
  }
})
process.send('ready')
