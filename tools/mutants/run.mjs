/**
 * Plants one defect at a time, most of them in the Lua scripts, and runs the tests that must notice. A mutant that stays green is a
 * check that no test covers.
 *
 *   npm run mutants -- [--list] [--only <text>]... [--jobs <n>]
 *
 * `--list` shows the mutants and whether each still matches the source, without running a test; `--only` selects those whose
 * file or name contains the text. Works on committed code in worktrees of its own. Exits 0 when every mutant is red.
 */
import { execFile, fork } from 'node:child_process'
import { existsSync, mkdtempSync, readFileSync, symlinkSync, writeFileSync } from 'node:fs'
import { tmpdir } from 'node:os'
import { join } from 'node:path'
import { fileURLToPath } from 'node:url'
import { parseArgs, promisify } from 'node:util'
import { MUTANTS as IN_LUA } from './lua.mjs'
import { PLANTED } from './planted.mjs'

const MUTANTS = [...IN_LUA, ...PLANTED]
const ROOT = fileURLToPath(new URL('../../', import.meta.url))
const run = promisify(execFile)
// A mutant may hang what it breaks; tests that hang have noticed.
const RUN_MS = 180_000
const DETAIL_LENGTH = 160

const { values } = parseArgs({
  options: {
    list: { type: 'boolean' },
    only: { type: 'string', multiple: true, default: [''] },
    jobs: { type: 'string', default: '1' },
  },
})
const chosen = MUTANTS.filter(({ name, file }) => values.only.some((text) => `${file}: ${name}`.includes(text)))

/** The page is bundled once, when a runner starts. */
const isBundled = (file) => file.startsWith('src/dashboard/page/')

/** What keeps a mutant from being one, if anything does. */
function fault({ name, file, find, replace, tests }, root) {
  if (MUTANTS.filter((other) => other.name === name).length > 1) return 'another one has its name'
  const missing = [file, ...tests].find((path) => !existsSync(join(root, path)))
  if (missing) return `${missing} is not there`
  const times = readFileSync(join(root, file), 'utf8').split(find).length - 1
  if (times !== 1) return `its text is there ${times} times`
  return find === replace ? 'it changes nothing' : undefined
}

/** A worktree of what is committed, with the dependencies of this one, and a runner of tests in it. */
async function createBench() {
  const root = mkdtempSync(join(tmpdir(), 'relayscope-mutants-'))
  await run('git', ['worktree', 'add', '--detach', root, 'HEAD'], { cwd: ROOT })
  symlinkSync(join(ROOT, 'node_modules'), join(root, 'node_modules'))
  let runner
  const heard = () => new Promise((resolve) => runner.once('message', resolve))

  /** With all that a mutant may have started. */
  function endRunner() {
    if (runner) process.kill(-runner.pid, 'SIGKILL')
    runner = undefined
  }

  /** What failed first of `tests`, with `file` as it is now; `undefined` when all passed. */
  async function failureOf(tests, file) {
    if (isBundled(file)) endRunner()
    if (!runner) {
      runner = fork(join(ROOT, 'tools/mutants/runner.mjs'), { cwd: root, detached: true, stdio: 'ignore' })
      await heard()
    }
    let timer
    const late = new Promise((resolve) => {
      timer = setTimeout(resolve, RUN_MS, { failure: 'hangs' })
    })
    const answer = heard()
    runner.send({ tests, file: join(root, file) })
    const { failure } = await Promise.race([answer, late])
    clearTimeout(timer)
    if (failure === 'hangs') endRunner()
    return failure
  }

  // A red that was red before says nothing.
  const before = new Map()

  return {
    async test(mutant) {
      const { file, find, replace, tests } = mutant
      const stale = fault(mutant, root)
      if (stale) return { word: 'STALE', detail: stale }
      const key = tests.join(' ')
      if (!before.has(key)) before.set(key, await failureOf(tests, file))
      if (before.get(key)) return { word: 'UNSOUND', detail: `red without a mutant: ${before.get(key)}` }
      const path = join(root, file)
      const source = readFileSync(path, 'utf8')
      writeFileSync(
        path,
        source.replace(find, () => replace),
      )
      const noticed = await failureOf(tests, file)
      writeFileSync(path, source)
      if (isBundled(file)) endRunner()
      else runner?.send({ file: path })
      return noticed ? { word: 'red', detail: noticed } : { word: 'GREEN', detail: 'no test would miss it' }
    },
    async close() {
      endRunner()
      await run('git', ['worktree', 'remove', '--force', root], { cwd: ROOT })
    },
  }
}

async function testAll() {
  const benches = await Promise.all(Array.from({ length: Math.max(1, Number(values.jobs)) }, createBench))
  const found = { red: 0, GREEN: 0, STALE: 0, UNSOUND: 0 }
  const waiting = [...chosen]
  const work = async (bench) => {
    for (let mutant = waiting.shift(); mutant; mutant = waiting.shift()) {
      const { word, detail } = await bench.test(mutant)
      found[word]++
      console.log(`${word.padEnd(7)}  ${mutant.file}: ${mutant.name}\n         ${detail.slice(0, DETAIL_LENGTH)}`)
    }
  }
  try {
    await Promise.all(benches.map(work))
  } finally {
    for (const bench of benches) await bench.close()
  }
  const { red, GREEN, STALE, UNSOUND } = found
  console.log(`${red} of ${chosen.length} red; ${GREEN} green, ${STALE} stale, ${UNSOUND} red without a mutant`)
  return red === chosen.length
}

function list() {
  const faults = chosen.map((mutant) => fault(mutant, ROOT))
  chosen.forEach(({ file, name }, i) => {
    console.log(`${file}: ${name}${faults[i] ? `\n         STALE: ${faults[i]}` : ''}`)
  })
  console.log(`${chosen.length} mutants, ${faults.filter(Boolean).length} stale`)
  return faults.every((one) => one === undefined)
}

const isFine = values.list ? list() : await testAll()
process.exitCode = chosen.length > 0 && isFine ? 0 : 1
