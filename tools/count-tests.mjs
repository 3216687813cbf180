/**
 * Counts the tests in a JSON report of Vitest: `node tools/count-tests.mjs <report> [<file>]` prints how many passed and how
 * many failed, and appends what failed to the file. A skipped test counts as failed, unless its name contains
 * "(does not apply: ". A file that fails before its first test counts as one failure.
 */
import { appendFileSync, readFileSync } from 'node:fs'
import { relative } from 'node:path'
import { fileURLToPath } from 'node:url'

/** Returns the counts of a parsed report, the names of skipped tests, and a text for each failure. */
export function countTests(report) {
  const failures = []
  const skipped = []
  let broken = 0
  for (const { name, status, message, assertionResults } of report.testResults) {
    const file = relative('.', name)
    const failed = assertionResults.filter((test) => test.status === 'failed')
    for (const { fullName, failureMessages } of failed)
      failures.push(`${file} > ${fullName}\n${failureMessages.join('\n').slice(0, 1_500)}`)
    if (failed.length === 0 && message) failures.push(`${file}\n${message.slice(0, 1_500)}`)
    if (failed.length === 0 && status === 'failed') broken++
    for (const { status: ended, fullName } of assertionResults)
      if (!['passed', 'failed'].includes(ended) && !fullName.includes('(does not apply: '))
        skipped.push(`${file} > ${fullName}`)
  }
  return { passed: report.numPassedTests, failed: report.numFailedTests + broken, skipped, failures }
}

if (process.argv[1] === fileURLToPath(import.meta.url)) {
  const [, , report, file] = process.argv
  const { passed, failed, skipped, failures } = countTests(JSON.parse(readFileSync(report, 'utf8')))
  for (const name of skipped) console.error(`skipped: ${name}`)
  if (file && failures.length > 0) appendFileSync(file, `${failures.join('\n')}\n`)
  console.log(passed, failed + skipped.length)
}
