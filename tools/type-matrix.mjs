/**
 * Compiles what users compile, with what they compile it with: every program of README and docs, every client of the
 * shared store and every host, over compilers, types of Node, resolutions, with and without the DOM, and all
 * declarations of the package checked. Prints what does not compile, and exits 1 then.
 *
 * `node tools/type-matrix.mjs [--only <text>]` takes the combinations whose name contains the text. Needs the built
 * package, and `npm ci --ignore-scripts --prefix tools/type-matrix`.
 */
import { execFile } from 'node:child_process'
import { rmSync, writeFileSync } from 'node:fs'
import { join, relative } from 'node:path'
import { parseArgs, promisify } from 'node:util'
import { createProject, packagesOf, shownPrograms } from './type-matrix/project.mjs'

const run = promisify(execFile)

/** The compiler that is no JavaScript. */
const NATIVE = 'typescript-7'
const NONE = 'no-node-types'
/** Whether too little is known about the type of a value: JavaScript in a document names no types, nor narrows `unknown`. */
const isUntyped = (code, text) =>
  (code >= 7005 && code <= 7053) ||
  code === 18046 ||
  text.endsWith("on type 'unknown'.") ||
  text.includes("Type 'unknown' is not assignable to type '{") ||
  // A constant such as `status: 'idle'` that is not written where its type is known.
  text.includes("Type 'string' is not assignable to type '\"")

const { values } = parseArgs({ options: { only: { type: 'string', default: '' } } })
const shown = shownPrograms()
const project = createProject(shown)

/** Without the types of Node there is the DOM, no host and no client on Node, but the first program of the README. */
function filesFor(types, dom) {
  if (types === NONE) return ['programs/portable.ts', ...shown.filter(({ isFirst }) => isFirst).map(({ path }) => path)]
  const isFor = ({ onPage, code }) => (dom || !onPage) && !(types === 'node-types-20' && code.includes('node:sqlite'))
  return ['programs/*', ...shown.filter(isFor).map(({ path }) => path)]
}

function* combinations() {
  // A Node of an odd number is soon out of use: the fast compiler is enough.
  for (const compiler of packagesOf('typescript-'))
    for (const types of [...packagesOf('node-types-'), NONE])
      for (const resolution of ['nodenext', 'bundler'])
        for (const dom of types === NONE ? [true] : [true, false])
          if (types !== 'node-types-25' || compiler === NATIVE) yield { compiler, types, resolution, dom }
}

/** Writes the configuration of a combination. Returns its path and name. */
function configure({ compiler, types, resolution, dom }) {
  const name = [compiler, types, resolution, dom ? 'dom' : 'no-dom'].join(' ')
  const config = join(project, `tsconfig.${name.replaceAll(' ', '.')}.json`)
  const compilerOptions = {
    module: resolution === 'bundler' ? 'esnext' : resolution,
    moduleResolution: resolution,
    moduleDetection: 'force',
    target: 'es2023',
    lib: ['es2023', ...(dom ? ['dom', 'dom.iterable', 'dom.asynciterable'] : [])],
    typeRoots: [`./${types}`],
    types: types === NONE ? [] : ['node'],
    strict: true,
    exactOptionalPropertyTypes: true,
    skipLibCheck: false,
    noEmit: true,
  }
  writeFileSync(config, JSON.stringify({ compilerOptions, include: filesFor(types, dom) }))
  return { name, compiler, config }
}

/** What does not compile, by combination: `{ name, found }`. */
async function compile(compiler, asked) {
  const program = join(import.meta.dirname, 'type-matrix', compiler === NATIVE ? 'compile-native.mjs' : 'compile.mjs')
  const configs = asked.map(({ config }) => config)
  const { stdout } = await run(process.execPath, [program, compiler, ...configs], { maxBuffer: 1 << 28 })
  const answers = stdout
    .trim()
    .split('\n')
    .map((line) => JSON.parse(line))
  return asked.map(({ name, config }) => ({ name, ...answers.find((answer) => answer.config === config) }))
}

/** Describes one error, or returns nothing for an ignored one; the text is the same in every combination. */
function describe({ file = '', line, code, text }) {
  const path = relative(project, file)
  const program = shown.find((one) => one.path === path)
  if (program && !program.typed && isUntyped(code, text)) return undefined
  return `${path}:${line} TS${code} ${text}`
}

const asked = [...combinations()].map(configure).filter(({ name }) => name.includes(values.only))
const compilers = [...new Set(asked.map(({ compiler }) => compiler))]
try {
  const defects = new Map()
  for (const compiler of compilers)
    for (const { name, found } of await compile(
      compiler,
      asked.filter((one) => one.compiler === compiler),
    ))
      for (const defect of new Set(found.map(describe).filter(Boolean)))
        defects.set(defect, [...(defects.get(defect) ?? []), name])
  for (const [defect, names] of defects)
    console.log(
      `${defect}\n  in ${names.length} combinations: ${names.slice(0, 4).join(', ')}${names.length > 4 ? ', …' : ''}\n`,
    )
  console.log(`${asked.length} combinations, ${shown.length} programs of the documents, ${defects.size} defects`)
  process.exitCode = defects.size === 0 && asked.length > 0 ? 0 : 1
} finally {
  rmSync(project, { recursive: true })
}
