/** The package as a user gets it: what is in it, what it brings along, and that each part of it works alone. */
import { spawnSync } from 'node:child_process'
import { readdir, readFile } from 'node:fs/promises'
import { dirname, join, posix } from 'node:path'
import { afterAll, beforeAll, describe, expect, it } from 'vitest'
import { auditFindings, packageProblems } from '../../tools/test-all.mjs'
import { bun, deno } from '../adapters/runtimes.js'
import { type Consumer, createConsumer, ROOT, runIn, SUBPATHS } from './consumer.js'

/** The subpaths of the contract. */
const PROMISED = [
  'relayscope',
  'relayscope/memory',
  'relayscope/redis',
  'relayscope/cooperative-site',
  'relayscope/control-server',
  'relayscope/publisher',
  'relayscope/browser',
  'relayscope/dashboard',
  'relayscope/metrics',
  'relayscope/ws',
  'relayscope/socket.io',
  'relayscope/follow',
  'relayscope/mcp',
  'relayscope/opentelemetry',
  'relayscope/probes',
  'relayscope/playwright',
  'relayscope/node',
  'relayscope/express',
  'relayscope/hono',
  'relayscope/deno',
  'relayscope/bullmq',
  'relayscope/incident',
  'relayscope/testing',
]
/** What opens a socket or keeps files; everything else runs on any runtime. */
const NODE_ONLY = ['relayscope/control-server', 'relayscope/opentelemetry', 'relayscope/redis']
const PORTABLE = SUBPATHS.filter((path) => !NODE_ONLY.includes(path))

const PACKED_BYTES = 1_500_000

/** The packages that one subpath alone needs, and that only its users install. */
const PEERS: Record<string, string[]> = {
  'relayscope/mcp': ['@modelcontextprotocol/server'],
  'relayscope/opentelemetry': ['@opentelemetry/api', '@opentelemetry/sdk-metrics'],
}

describe('the package', () => {
  let consumer: Consumer
  beforeAll(async () => {
    consumer = await createConsumer(Object.values(PEERS).flat())
  })
  afterAll(() => consumer?.remove())

  const textOf = (file: string) => readFile(join(consumer.dir, 'node_modules/relayscope', file), 'utf8')

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
    expect(packageProblems(consumer.files)).toEqual([])
    const planted = [
      'src/index.ts',
      'docs/.vitepress/config.mjs',
      'docs/images/overview.png',
      'test/x.test.ts',
      'dist/x.test.js',
      'dist/x.ts',
      '.env',
      'docs/notes.txt',
    ]
    expect(packageProblems([...consumer.files, ...planted])).toEqual(planted.map((file) => `unexpected: ${file}`))
    expect(packageProblems(consumer.files.filter((file) => file !== 'SECURITY.md'))).toEqual(['missing: SECURITY.md'])
  })

  it('has its dependencies audited only where the registry can be asked', () => {
    const found = { vulnerabilities: { zod: { name: 'zod', severity: 'high' } } }
    expect(auditFindings(JSON.stringify(found))).toEqual(['zod: high'])
    expect(auditFindings(JSON.stringify({ vulnerabilities: {} }))).toEqual([])
    for (const offline of ['', '{"error":{"code":"ENOTFOUND"}}', '{"message":"405","statusCode":405}', 'null'])
      expect(auditFindings(offline)).toBeNull()
  })

  it('is at most 1.5 MB packed', () => {
    expect(consumer.size).toBeLessThanOrEqual(PACKED_BYTES)
  })

  it('brings its documents, and none of their links leads out of it', async () => {
    const documents = consumer.files.filter((file) => /^[^/]*\.md$|^docs\/.*\.(?:md|txt)$/.test(file))
    const ours = (await readdir(join(ROOT, 'docs')))
      .filter((name) => name.endsWith('.md'))
      .map((name) => `docs/${name}`)
    expect(documents).toEqual(expect.arrayContaining(['README.md', ...ours]))
    const dead: string[] = []
    for (const file of documents)
      for (const [, link] of (await textOf(file))
        .replaceAll(/^```[\s\S]*?^```/gm, '')
        .matchAll(/\]\((?!https?:|#)([^)\s#]+)[^)\s]*\)/g)) {
        const target = posix.join(posix.dirname(file), link as string)
        // Pictures are in the repository and on the site.
        if (!target.endsWith('.png') && !consumer.files.includes(target)) dead.push(`${file}: ${link}`)
      }
    expect(dead).toEqual([])
  })

  it('cites nothing in its types that it does not bring', async () => {
    const cited: string[] = []
    for (const file of consumer.files.filter((name) => name.endsWith('.d.ts')))
      for (const [, path] of (await textOf(file)).matchAll(
        /(?<![\w./])((?:docs|src|test|bench|tools|examples)\/[\w./-]+)/g,
      ))
        if (!consumer.files.includes((path as string).replace(/\.$/, ''))) cited.push(`${file}: ${path}`)
    expect(cited).toEqual([])
  })

  it.each([
    ['relayscope', 'resolveAdminAuth({ key: undefined })'],
    ['relayscope', 'createDiagnosticsRouter({})'],
    ['relayscope/memory', 'createMemoryFacilities({ nodId: 1 })'],
    ['relayscope/memory', "await createMemoryFacilities().rpc.settle('1', { okay: true })"],
    ['relayscope/memory', "await createMemoryFacilities().dispatcher.attach({ user: 'ada' })"],
    ['relayscope/redis', "createRedisFacilities({ client: {}, deploymentId: 'd' })"],
    ['relayscope/ws', 'followWebSockets({}, {})'],
  ])('%s shows the error of %s without a wall of code', (subpath, call) => {
    const [name] = /\bcreate\w+|\b(?:resolve|follow)\w+/.exec(call) ?? []
    const program = `import { ${name} } from '${subpath}'\n${call}\n`
    const ran = spawnSync(process.execPath, ['--input-type=module', '-e', program], {
      cwd: consumer.dir,
      encoding: 'utf8',
    })
    expect(ran.status).toBe(1)
    expect(ran.stderr).toMatch(/^(?:\w*Error|Refusal): /m)
    expect(ran.stderr.length, ran.stderr).toBeLessThan(2_500)
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

  it.each(SUBPATHS)('%s loads nothing but the two dependencies', async (subpath) => {
    const foreign = [...(await imports(built(subpath)))].filter(
      (name) => !name.startsWith('/') && !name.startsWith('node:'),
    )
    expect(foreign.filter((name) => !['zod', 'itty-router', ...(PEERS[subpath] ?? [])].includes(name))).toEqual([])
  })

  it.each(['relayscope/browser', 'relayscope/publisher'])('%s loads no zod', async (subpath) => {
    expect([...(await imports(built(subpath)))].filter((name) => !name.startsWith('/'))).toEqual([])
  })

  it.each(SUBPATHS)('%s is imported alone on Node, says nothing and opens nothing', async (subpath) => {
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
