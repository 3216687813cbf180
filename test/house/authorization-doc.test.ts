/** Holds the table of docs/authorization.md: it names every route once, and as refused those that cannot be narrowed. */
import { readFileSync } from 'node:fs'
import { join } from 'node:path'
import { describe, expect, it } from 'vitest'
import { ROUTES } from '../../src/diagnostics/routes.js'
import { WATCH } from '../../src/diagnostics/watch/route.js'
import { ROOT } from './imports.js'

const [, table = ''] =
  /\| routes \| what is told \|\n\|---\|---\|\n((?:\|.*\n)+)/.exec(
    readFileSync(join(ROOT, 'docs/authorization.md'), 'utf8'),
  ) ?? []
const rows = table.trim().split('\n')
const isRefused = (row: string) => row.includes('`not_narrowable`')
const pathsOf = (shown: string[]) =>
  shown.flatMap((row) => [...(row.split('|')[1] as string).matchAll(/`([^`]+)`/g)].map(([, path]) => path)).sort()
const routes = (scopable: boolean) =>
  [...ROUTES, WATCH.route]
    .filter((route) => (route.scopable === true) === scopable)
    .map(({ path }) => path)
    .sort()

describe('what somebody sees who sees some users, as docs/authorization.md has it', () => {
  it('is told of every route that narrows its answer', () => {
    expect(pathsOf(rows.filter((row) => !isRefused(row)))).toEqual(routes(true))
  })

  it('is refused of all others', () => {
    expect(pathsOf(rows.filter(isRefused))).toEqual(routes(false))
  })
})
