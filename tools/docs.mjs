/**
 * Brings the generated parts of the documents up to date: the tables of routes and options, the JSON Schema of incidents, the
 * results of the benchmarks, and the code cut from examples.
 * With `--check` it writes nothing, names what is not up to date, and exits 1. Needs the built package.
 */
import { existsSync, readdirSync, readFileSync, writeFileSync } from 'node:fs'
import { openApiDocument } from 'relayscope'
import { incidentJsonSchema } from 'relayscope/incident'
import { benchmarksDocument } from '../bench/results.mjs'
import { inputsDocument } from './inputs-doc.mjs'
import { llmsText } from './llms.mjs'
import { optionsDocuments } from './options-doc.mjs'
import { routesDocuments } from './routes-doc.mjs'
import { fillSnippets } from './snippets.mjs'
import { stepsRenderer } from './steps.mjs'

const ROOT = new URL('../', import.meta.url)
const read = (path) => readFileSync(new URL(path, ROOT), 'utf8')
const check = process.argv.includes('--check')
const schema = `${JSON.stringify(incidentJsonSchema(), null, 1)}\n`
const fillSteps = await stepsRenderer(ROOT)
const whole = new Map([
  ...routesDocuments(openApiDocument()),
  ...optionsDocuments(ROOT),
  ['docs/facility-inputs.md', await inputsDocument(ROOT)],
  ['docs/incident.schema.json', schema],
  ['docs/llms.txt', llmsText(read('docs/README.md'), JSON.parse(read('package.json')).description)],
  ['docs/benchmarks.md', benchmarksDocument(JSON.parse(read('bench/results.json')))],
])

const names = readdirSync(new URL('docs/', ROOT)).filter((name) => name.endsWith('.md'))
const stale = [...new Set(['README.md', ...whole.keys(), ...names.map((name) => `docs/${name}`)])].filter((path) => {
  const file = new URL(path, ROOT)
  const now = existsSync(file) ? readFileSync(file, 'utf8') : ''
  const then = whole.get(path) ?? fillSteps(fillSnippets(now, ROOT))
  if (then !== now && !check) writeFileSync(file, then)
  return then !== now
})

for (const path of stale) console.log(`${check ? 'not up to date' : 'written'}: ${path}`)
process.exitCode = check && stale.length > 0 ? 1 : 0
