/** Holds the sections of docs/findings.md: each kind, in the words of its answer. */
import { readFileSync } from 'node:fs'
import { join } from 'node:path'
import { describe, expect, it } from 'vitest'
import { FindingKind, finding } from '../../src/internal/views/findings/finding.js'
import { ROOT } from './imports.js'

const text = readFileSync(join(ROOT, 'docs/findings.md'), 'utf8')

describe('docs/findings.md', () => {
  it.each(
    FindingKind.options,
  )('says of %s what its answer says, and where to look first, under its heading', (kind) => {
    const { means, does_not_mean, help } = finding(kind, {}, null, [])
    const [, section = ''] = text.split(`\n### ${kind}\n`)
    const [shownMeans, shownNot, look] = section.trim().split('\n')
    expect([shownMeans, shownNot]).toEqual([means, does_not_mean])
    expect(look).toMatch(/^Look first: .+/)
    expect(help).toBe(`docs/findings.md#${kind}`)
  })
})
