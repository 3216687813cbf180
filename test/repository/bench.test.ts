/** That `npm run bench` runs all benchmarks there are, and judges what they say. */
import { execFile } from 'node:child_process'
import { readdirSync, readFileSync } from 'node:fs'
import { join } from 'node:path'
import { promisify } from 'node:util'
import { expect, it } from 'vitest'
import { ROOT } from './imports.js'

/** Modules that are not benchmarks of their own; `watch` and `records` are parts of `questions`. */
const PARTS = ['delivery-limit', 'peers', 'records', 'report', 'results', 'run', 'watch']
const run = (...args: string[]) => promisify(execFile)(process.execPath, ['bench/run.mjs', ...args], { cwd: ROOT })

it('runs every benchmark, each of which tells its figures and their goals', async () => {
  const files = readdirSync(join(ROOT, 'bench')).filter((name) => name.endsWith('.mjs'))
  const names = files.map((name) => name.replace('.mjs', '')).filter((name) => !PARTS.includes(name))
  const { stdout } = await run('--list')
  expect(stdout.trim().split('\n').sort()).toEqual(names.sort())
  const texts = readdirSync(join(ROOT, 'bench'), { recursive: true, encoding: 'utf8' })
    .filter((name) => name.endsWith('.mjs') && !/node_modules|peers|delivery-limit|records|results|run\.mjs/.test(name))
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

it('shows the median and the range of several runs, and fails a benchmark that finds a wrong answer', async () => {
  const [report, results]: string[] = ['bench/report.mjs', 'bench/results.mjs'].map((path) => join(ROOT, path))
  const { check } = (await import(report as string)) as { check(what: string, found: unknown, wanted: unknown): void }
  expect(() => check('the page is whole', [1], [1])).not.toThrow()
  expect(() => check('the page is whole', [1], [1, 2])).toThrow('wrong: the page is whole: found [1], expected [1,2]')
  const { mergeRuns, rowsOf } = await import(results as string)
  const run = (found: number | null) => ({
    findings: [{ what: 'a page', goal: 2, unit: '×', better: 'lower', found }],
    checks: [{ what: 'the page is whole', count: 50 }],
    failed: null,
  })
  expect(rowsOf('pages', mergeRuns([run(1.5), run(3), run(1.25)]))).toEqual([
    ['pages', 'the page is whole', '–', '150 checked', '–', 'right'],
    ['pages', 'a page', '≤ 2.00 ×', '1.50 ×', '1.25–3.00 ×', 'met'],
  ])
  expect(rowsOf('pages', mergeRuns([{ ...run(null), failed: 'ended with 1' }]))).toEqual([
    ['pages', 'the page is whole', '–', '50 checked', '–', 'right'],
    ['pages', 'a page', '≤ 2.00 ×', 'unknown', '–', '**missed**'],
    ['pages', 'ended with 1', '–', '–', '–', '**not measured**'],
  ])
})
