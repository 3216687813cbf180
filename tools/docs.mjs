/**
 * Brings the generated parts of the documents up to date: the tables of routes and options, and the code cut from examples.
 * With `--check` it writes nothing, names what is not up to date, and exits 1. Needs the built package.
 */
import { existsSync, readdirSync, readFileSync, writeFileSync } from 'node:fs'
import { openApiDocument } from 'relayscope'
import { optionsDocument } from './options-doc.mjs'
import { routesDocument, routeTable } from './routes-doc.mjs'
import { fillSnippets } from './snippets.mjs'

const ROOT = new URL('../', import.meta.url)
const ROUTES = 'docs/routes.md'
const OPTIONS = 'docs/options.md'
const TABLE = /<!-- routes -->\n[\s\S]*?<!-- \/routes -->/

const check = process.argv.includes('--check')
const document = openApiDocument()

function generated(path, text) {
  if (path === ROUTES) return routesDocument(document)
  if (path === OPTIONS) return optionsDocument(ROOT)
  const table = `<!-- routes -->\n${routeTable(document)}\n<!-- /routes -->`
  return fillSnippets(text, ROOT).replace(TABLE, () => table)
}

const names = readdirSync(new URL('docs/', ROOT)).filter((name) => name.endsWith('.md'))
const stale = [...new Set(['README.md', ROUTES, OPTIONS, ...names.map((name) => `docs/${name}`)])].filter((path) => {
  const file = new URL(path, ROOT)
  const now = existsSync(file) ? readFileSync(file, 'utf8') : ''
  const then = generated(path, now)
  if (then !== now && !check) writeFileSync(file, then)
  return then !== now
})

for (const path of stale) console.log(`${check ? 'not up to date' : 'written'}: ${path}`)
process.exitCode = check && stale.length > 0 ? 1 : 0
