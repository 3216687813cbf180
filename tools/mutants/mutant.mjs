/** How a list of mutants is written: by file, each with the tests that must notice it. */

/**
 * @param {string} file that is changed
 * @param {string | string[]} tests the fewest files that notice
 * @param {[name: string, find: string, replace: string, tests?: string | string[]][]} mutants each one defence, taken out
 */
export const weaken = (file, tests, mutants) =>
  mutants.map(([name, find, replace, own = tests]) => ({ name, file, find, replace, tests: [own].flat() }))
