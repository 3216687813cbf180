/** Holds what is generated in the documents to what the built package says. */
import { execFileSync } from 'node:child_process'
import { expect, it } from 'vitest'
import { ROOT } from './imports.js'

it('route tables, options and code in the documents are up to date', () => {
  const check = () => execFileSync(process.execPath, ['tools/docs.mjs', '--check'], { cwd: ROOT, encoding: 'utf8' })
  expect(check()).toBe('')
})
