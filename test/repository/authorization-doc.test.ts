/** Checks the table of docs/authorization.md: every route is in it once, and as refused if it cannot be scoped. */
import { readFileSync } from 'node:fs'
import { join } from 'node:path'
import { describe, expect, it } from 'vitest'
import { ROUTES } from '../../src/internal/diagnostics/routes.js'
import { ROOT } from './imports.js'

const [, table = ''] =
  /\| routes \| a scoped caller gets \|\n\|---\|---\|\n((?:\|.*\n)+)/.exec(
    readFileSync(join(ROOT, 'docs/authorization.md'), 'utf8'),
  ) ?? []
const rows = table.trim().split('\n')
const isRefused = (row: string) => row.includes('`not_narrowable`')
const pathsOf = (shown: string[]) =>
  shown.flatMap((row) => [...(row.split('|')[1] as string).matchAll(/`([^`]+)`/g)].map(([, path]) => path)).sort()
const routes = (scopable: boolean) =>
  ROUTES.filter((route) => (route.scopable === true) === scopable)
    .map(({ path }) => path)
    .sort()

describe('what a scoped caller sees in docs/authorization.md', () => {
  it('has every scoped route', () => {
    expect(pathsOf(rows.filter((row) => !isRefused(row)))).toEqual(routes(true))
  })

  it('lists all others as refused', () => {
    expect(pathsOf(rows.filter(isRefused))).toEqual(routes(false))
  })
})
