/** That each planted defect still has the text that it replaces, and the tests that must find it. */
import { existsSync, readFileSync } from 'node:fs'
import { expect, it } from 'vitest'
import { MUTANTS } from '../../tools/mutants/lua.mjs'
import { PLANTED } from '../../tools/mutants/planted.mjs'

it.each([...MUTANTS, ...PLANTED])('$name: can be planted', ({ file, find, replace, tests }) => {
  expect(readFileSync(file, 'utf8').split(find)).toHaveLength(2)
  expect(replace).not.toBe(find)
  expect(tests.filter((path) => !existsSync(path))).toEqual([])
})
