/** `relayscope docs` over the documents of the repository. */
import { readdirSync } from 'node:fs'
import { describe, expect, it } from 'vitest'
import { UsageError } from '../../src/cli/arguments.js'
import { docs } from '../../src/cli/docs.js'

function call(...args: string[]) {
  let [out, err] = ['', '']
  const code = docs(args, { write: (text: string) => (out += text) }, { write: (text: string) => (err += text) })
  return { code, out, err }
}

describe('relayscope docs', () => {
  it('lists every page with its question', () => {
    const { code, out } = call()
    const pages = readdirSync('docs').filter((name) => name.endsWith('.md') && name !== 'README.md')
    expect(code).toBe(0)
    expect(
      out
        .trimEnd()
        .split('\n')
        .map((line) => `${line.split(' ')[0]}.md`),
    ).toEqual(pages)
    expect(out.trimEnd().split('\n')).toEqual(pages.map(() => expect.stringMatching(/^\S+ +\S/)))
    expect(out).toMatch(/^mounting +How do I add the router to my server or framework\?$/m)
  })

  it.each(['quickstart', 'Quickstart', 'docs/quickstart.md'])('prints the page %s', (name) => {
    const { code, out } = call(name)
    expect([code, out.startsWith('# Quickstart\n')]).toEqual([0, true])
  })

  it('prints the sections whose headings contain the word, and the lines elsewhere', () => {
    const { code, out } = call('the same on redis')
    expect([code, out.includes('docs/quickstart.md\n\n## The same on Redis')]).toEqual([0, true])
    const problem = call('inspector_timeout').out
    expect(problem).toMatch(/^docs\/problems\.md\n\n### inspector_timeout\n\n504, returned by/)
    expect(problem).toMatch(/^docs\/terminal\.md, .*: .*inspector_timeout/m)
  })

  it('bounds what a frequent word prints', () => {
    const lines = call('the')
      .out.split('\n')
      .filter((line) => /^docs\/\S+, /.test(line))
    expect(lines).toHaveLength(30)
    expect(call('the').out).toMatch(/\d+ more lines contain it/)
  })

  it('says that no page contains a word', () => {
    expect(call('xyzzy-none')).toEqual({
      code: 1,
      out: '',
      err: 'relayscope: no page contains "xyzzy-none". relayscope docs lists the pages\n',
    })
  })

  it('finds the sections with all of several words', () => {
    const { code, out } = call('heartbeat', 'SUPERSEDED')
    expect([code, /^docs\/facility-calls\.md, .*heartbeat.*superseded/im.test(out)]).toEqual([0, true])
    expect(call('heartbeat', 'xyzzy-none').code).toBe(1)
  })

  it('refuses an unknown option, and shows its usage', () => {
    expect(() => call('--word')).toThrow(UsageError)
    expect(call('--help').out).toMatch(/^relayscope docs: /)
  })
})
