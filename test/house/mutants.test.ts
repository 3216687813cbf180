/** That the list of defences does not rot: each mutant still fits the source that it weakens. What they turn red only the program says. */
import { execFile } from 'node:child_process'
import { promisify } from 'node:util'
import { expect, it } from 'vitest'

it('has for every defence a mutant that fits its source exactly once, by a name of its own', async () => {
  const args = ['tools/mutants.mjs', '--list']
  const { stdout } = await promisify(execFile)(process.execPath, args).catch((error) => error)
  const lines = String(stdout).trimEnd().split('\n')
  expect(lines.filter((line, i) => line.includes('STALE') || lines[i + 1]?.includes('STALE'))).toEqual([])
  expect(Number.parseInt(lines.at(-1) ?? '', 10)).toBeGreaterThanOrEqual(129)
})
