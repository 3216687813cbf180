/** That `npm run bench` runs all benchmarks there are, and judges what they say. */
import { execFile } from 'node:child_process'
import { readdirSync, readFileSync } from 'node:fs'
import { join } from 'node:path'
import { promisify } from 'node:util'
import { expect, it } from 'vitest'
import { ROOT } from './imports.js'

/** Modules that are not benchmarks of their own; `watch` is a part of `questions`. */
const PARTS = ['delivery-limit', 'peers', 'report', 'run', 'watch']
const run = (...args: string[]) => promisify(execFile)(process.execPath, ['bench/run.mjs', ...args], { cwd: ROOT })

it('runs every benchmark, each of which tells its figures and their goals', async () => {
  const files = readdirSync(join(ROOT, 'bench')).filter((name) => name.endsWith('.mjs'))
  const names = files.map((name) => name.replace('.mjs', '')).filter((name) => !PARTS.includes(name))
  const { stdout } = await run('--list')
  expect(stdout.trim().split('\n').sort()).toEqual(names.sort())
  const texts = readdirSync(join(ROOT, 'bench'), { recursive: true, encoding: 'utf8' })
    .filter((name) => name.endsWith('.mjs') && !/node_modules|peers|delivery-limit|run\.mjs/.test(name))
    .map((name): [string, string] => [name, readFileSync(join(ROOT, 'bench', name), 'utf8')])
  const silent = texts.filter(([name, text]) => !text.includes('report') && name !== 'plugs.mjs')
  expect(silent.map(([name]) => name)).toEqual([])
})

it('runs those of a name, and says which there are where none has it', async () => {
  expect((await run('--list', 'delivery')).stdout).toBe('redis-delivery\n')
  await expect(run('nothing')).rejects.toThrow(/no benchmark is called nothing; there are dispatch, /)
})

it('judges a figure by its goal, and what could not be measured as missed', async () => {
  const report: string = join(ROOT, 'bench/report.mjs')
  const { isMet } = (await import(report)) as { isMet(finding: object): boolean | null }
  const verdicts = (better: string, goal: number | null) =>
    [1, 2, 3, Number.NaN, null].map((found) => isMet({ found, goal, better }))
  expect(verdicts('lower', 2)).toEqual([true, true, false, false, false])
  expect(verdicts('higher', 2)).toEqual([false, true, true, false, false])
  expect(verdicts('higher', null)).toEqual([null, null, null, null, null])
})
