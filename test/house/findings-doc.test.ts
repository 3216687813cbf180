/** Holds the table of findings in docs/findings.md: each kind, in the words of its answer. */
import { readFileSync } from 'node:fs'
import { join } from 'node:path'
import { describe, expect, it } from 'vitest'
import { FindingKind, finding } from '../../src/views/findings/finding.js'
import { ROOT } from './imports.js'

const text = readFileSync(join(ROOT, 'docs/findings.md'), 'utf8')

describe('docs/findings.md', () => {
  it.each(FindingKind.options)('says of %s what its answer says, and where to look first', (kind) => {
    const { means, does_not_mean } = finding(kind, {}, null, [])
    const row = text.split('\n').find((line) => line.startsWith(`| \`${kind}\` |`)) ?? ''
    expect(
      row
        .split('|')
        .slice(2, 4)
        .map((cell) => cell.trim()),
    ).toEqual([means, does_not_mean])
    expect(row.split('|')[4]?.trim()).toBeTruthy()
  })
})
