/** The package as a user gets it: what is in it, what it brings along, and that each part of it works alone. */
import { readFile } from 'node:fs/promises'
import { dirname, join } from 'node:path'
import { afterAll, beforeAll, describe, expect, it } from 'vitest'
import { bun, deno } from '../adapters/runtimes.js'
import { type Consumer, createConsumer, runIn } from './consumer.js'

/** The subpaths of the contract. */
const PROMISED = [
  'relayscope',
  'relayscope/memory',
  'relayscope/redis',
  'relayscope/cooperative-site',
  'relayscope/control-server',
  'relayscope/publisher',
  'relayscope/browser',
  'relayscope/node',
  'relayscope/express',
  'relayscope/hono',
  'relayscope/deno',
  'relayscope/testing',
]
/** What opens a socket or keeps files; everything else runs on any runtime. */
const NODE_ONLY = ['relayscope/control-server', 'relayscope/redis']
const PORTABLE = PROMISED.filter((path) => !NODE_ONLY.includes(path))

describe('the package', () => {
  let consumer: Consumer
  beforeAll(async () => {
    consumer = await createConsumer()
  })
  afterAll(() => consumer?.remove())

  const built = (subpath: string): string => {
    const entry = consumer.manifest.exports[`.${subpath.slice('relayscope'.length)}`]
    if (typeof entry !== 'object') throw new Error(`${subpath} is not exported`)
    return join(consumer.dir, 'node_modules/relayscope', entry.default)
  }

  /** Every module that `file` loads when it is imported, ours followed, others named. */
  async function imports(file: string, seen = new Set<string>()): Promise<Set<string>> {
    if (seen.has(file)) return seen
    seen.add(file)
    const text = await readFile(file, 'utf8')
    for (const [, name] of text.matchAll(/(?:^|[\s;}])(?:import|export)\s*(?:[\w*\s{},$]*?from\s*)?["']([^"']+)["']/g))
      if (name?.startsWith('.')) await imports(join(dirname(file), name), seen)
      else if (name) seen.add(name)
    return seen
  }

  it('exports every subpath of the contract', () => {
    expect(PROMISED.filter((path) => !consumer.subpaths.includes(path))).toEqual([])
  })

  it('holds what a user needs and nothing else', () => {
    const unexpected = consumer.files.filter(
      (file) =>
        !/^(?:dist\/.+\.(?:js|d\.ts|js\.map|d\.ts\.map)|package\.json|README\.md|LICENSE|CHANGELOG\.md)$/.test(file),
    )
    expect(unexpected).toEqual([])
    expect(consumer.files).toEqual(expect.arrayContaining(['package.json', 'README.md', 'LICENSE', 'CHANGELOG.md']))
  })

  it('brings two dependencies', () => {
    expect(Object.keys(consumer.manifest.dependencies).sort()).toEqual(['itty-router', 'zod'])
    const peers = Object.keys(consumer.manifest.peerDependencies ?? {})
    expect(peers.filter((name) => !consumer.manifest.peerDependenciesMeta?.[name]?.optional)).toEqual([])
  })

  it('shows nothing of itty-router in its types', async () => {
    const texts = consumer.files
      .filter((file) => file.endsWith('.d.ts'))
      .map((file) => readFile(join(consumer.dir, 'node_modules/relayscope', file), 'utf8'))
    expect(texts.length).toBeGreaterThan(0)
    expect((await Promise.all(texts)).filter((text) => text.includes('itty'))).toEqual([])
  })

  it.each(PORTABLE)('%s loads no module of Node', async (subpath) => {
    const loaded = await imports(built(subpath))
    expect([...loaded].filter((name) => name.startsWith('node:'))).toEqual([])
  })

  it.each(PROMISED)('%s loads nothing but the two dependencies', async (subpath) => {
    const foreign = [...(await imports(built(subpath)))].filter(
      (name) => !name.startsWith('/') && !name.startsWith('node:'),
    )
    expect(foreign.filter((name) => !['zod', 'itty-router'].includes(name))).toEqual([])
  })

  it.each(['relayscope/browser', 'relayscope/publisher'])('%s loads no zod', async (subpath) => {
    expect([...(await imports(built(subpath)))].filter((name) => !name.startsWith('/'))).toEqual([])
  })

  it.each(PROMISED)('%s is imported alone on Node, says nothing and opens nothing', async (subpath) => {
    expect(await runIn(consumer, process.execPath, ['--input-type=module', '-e', `await import('${subpath}')`])).toBe(
      '',
    )
  })

  const everywhere = PORTABLE.map((subpath) => `await import('${subpath}')`).join('\n')
  for (const { name, command, missing, args } of [
    { ...deno, name: 'Deno', args: ['eval', '--node-modules-dir=manual'] },
    { ...bun, name: 'Bun', args: ['-e'] },
  ]) {
    const title = missing ? ` (skipped: ${missing})` : ''
    it.skipIf(missing !== undefined)(`is imported whole on ${name}${title}`, async () => {
      expect(await runIn(consumer, command, [...args, everywhere])).toBe('')
    })
  }
})
