/** Holds the documents: links lead somewhere, and what is generated is what the code says now. */
import { existsSync, readdirSync, readFileSync } from 'node:fs'
import { dirname, join } from 'node:path'
import { describe, expect, it } from 'vitest'
import { llmsText } from '../../tools/llms.mjs'
import { ROOT } from './imports.js'

const documents = [
  'README.md',
  'CHANGELOG.md',
  'SECURITY.md',
  ...readdirSync(join(ROOT, 'docs')).map((name) => `docs/${name}`),
].filter((path) => path.endsWith('.md'))
const textOf = (path: string) => readFileSync(join(ROOT, path), 'utf8')

/** A heading as the fragment that leads to it. */
function toFragment(heading: string): string {
  return heading
    .toLowerCase()
    .replaceAll(/[^\p{L}\p{N}\s_-]/gu, '')
    .trim()
    .replaceAll(/\s/g, '-')
}

/** Links of a document that lead nowhere within the checkout. */
function brokenLinks(path: string): string[] {
  const prose = textOf(path).replaceAll(/^```[\s\S]*?^```/gm, '')
  const links = [...prose.matchAll(/\]\(([^)\s]+)\)/g)].map(([, target]) => target as string)
  return links.filter((target) => {
    if (/^https?:/.test(target)) return false
    const [file, fragment] = target.split('#') as [string, string | undefined]
    const aim = file === '' ? path : join(dirname(path), file)
    if (!existsSync(join(ROOT, aim))) return true
    if (fragment === undefined) return false
    return ![...textOf(aim).matchAll(/^#+ (.+)$/gm)].some(([, heading]) => toFragment(heading as string) === fragment)
  })
}

it('AGENTS.md, the map for coding agents, has no link that leads nowhere', () => {
  expect(brokenLinks('AGENTS.md')).toEqual([])
})

describe('the documents', () => {
  it.each(documents)('%s has no link that leads nowhere', (path) => {
    expect(brokenLinks(path)).toEqual([])
  })

  it.each(documents)('%s has no code block of the library that no example runs', (path) => {
    const blocks = [...textOf(path).matchAll(/(.*)\n```(?:js|ts|mjs)\n/g)]
    expect(blocks.filter(([, before]) => !/^<!-- from examples\/\S+ -->$/.test(before as string))).toEqual([])
  })

  it.each(documents)('%s has a code block after each comment that names an example', (path) => {
    expect(textOf(path).match(/<!-- from \S+ -->(?!\n```\w+\n)/g)).toBeNull()
  })

  it.each(documents)('%s shows every listen call with a host', (path) => {
    const calls = [
      ...textOf(path).matchAll(
        /(?:\.listen|(?:Deno|Bun)\.serve|startNodeServer)\((?!handler, options\)).*(?:\n {2}.*)*/g,
      ),
    ]
    const open = calls
      .map(([call]) => call)
      .filter((call) => !/host|'127\.0\.0\.1'|\btoDenoHandler\(router\)/i.test(call))
    expect(open).toEqual([])
  })

  it('show where every host listens on which the router can be mounted', () => {
    const blocks = [
      ...textOf('docs/mounting.md').matchAll(/<!-- from examples\/([\w-]+)\.mjs#mount -->\n([\s\S]*?)```\n/g),
    ]
    const silent = blocks.filter(([, , code]) => !/listen\(|serve\(/.test(code as string)).map(([, name]) => name)
    // The platform of a worker decides that.
    expect(silent).toEqual(['worker'])
  })

  it('give the composition only what is fed, and so do the examples', () => {
    const examples = readdirSync(join(ROOT, 'examples'), { recursive: true, encoding: 'utf8' })
      .filter((name) => name.endsWith('.mjs'))
      .map((name) => `examples/${name}`)
    // A host that passes all facilities must write to all of them, as the live host does; one world is about that.
    const feedsAll = new Set(['examples/live-host/facilities.mjs', 'examples/live-host/worlds/empty.mjs'])
    const givesAll = /memoryComposition\((?:facilities|createMemoryFacilities\(\))/
    const wrong = [...documents, ...examples].filter((path) => !feedsAll.has(path) && givesAll.test(textOf(path)))
    expect(wrong).toEqual([])
  })

  it('are all linked from docs/README.md, and that from the README', () => {
    const index = textOf('docs/README.md')
    const others = documents.filter((path) => path !== 'docs/README.md')
    const linkTo = (path: string) => `](${path.startsWith('docs/') ? path.slice('docs/'.length) : `../${path}`})`
    expect(others.filter((path) => !index.includes(linkTo(path)))).toEqual([])
    expect(textOf('README.md')).toContain('](docs/README.md)')
  })

  it.each(documents)('%s has at most 20 kB', (path) => {
    expect(Buffer.byteLength(textOf(path))).toBeLessThanOrEqual(20_000)
  })

  it('keep the README under 900 words', () => {
    expect(textOf('README.md').split(/\s+/).length).toBeLessThanOrEqual(900)
  })

  it('have a list of all pages for coding agents that is up to date', () => {
    const { description } = JSON.parse(textOf('package.json')) as { description: string }
    expect(textOf('docs/llms.txt')).toBe(llmsText(textOf('docs/README.md'), description))
  })

  it('have a short version for coding agents of at most 8 kB, whose pages and routes exist', () => {
    const text = textOf('docs/llms-small.txt')
    expect(Buffer.byteLength(text)).toBeLessThanOrEqual(8_000)
    const pages = [...text.matchAll(/\bPages?:\s([\w,\s-]+)\./g)].flatMap(([, list]) => (list as string).split(/,\s/))
    expect(pages.length).toBeGreaterThan(15)
    expect(pages.filter((page) => !documents.includes(`docs/${page}.md`))).toEqual([])
    const routes = textOf('docs/routes.md').replaceAll('{connection_id}', '{id}')
    const [, listed = ''] = /`\/` lists all\. ([\s\S]*?)Lists have/.exec(text) ?? []
    const paths = [...listed.matchAll(/`(\/[\w/{}.-]+)/g)].map(([, path]) => path as string)
    expect(paths.length).toBeGreaterThan(15)
    expect(paths.filter((path) => !routes.includes(path))).toEqual([])
  })

  it('name every subpath of the package in docs/imports.md', () => {
    const { name, exports } = JSON.parse(textOf('package.json')) as { name: string; exports: Record<string, unknown> }
    const subpaths = Object.keys(exports).filter((path) => path !== './package.json')
    const imports = textOf('docs/imports.md')
    expect(subpaths.filter((path) => !imports.includes(`\`${name}${path.slice(1)}\``))).toEqual([])
  })

  it('name the versions of the frameworks whose projects are built', () => {
    const versions = textOf('tools/frameworks/projects.mjs').matchAll(
      /(?:next|@sveltejs\/kit|react-router|@remix-run\/dev|astro|nuxt|nitropack|nitro|elysia)'?: '([\d.]+)'/g,
    )
    const built = [...versions].map(([, version]) => version as string)
    expect(built).toHaveLength(9)
    expect(built.filter((version) => !textOf('docs/mounting.md').includes(`${version}`))).toEqual([])
  })

  it.each(documents)('%s names no file of the repository that is not there', (path) => {
    const named = [...textOf(path).matchAll(/`((?:src|test|tools|bench|examples|docs)\/[\w./-]+)`/g)]
    // A project of a reader is laid out as that folder is.
    const roots = [ROOT, join(ROOT, 'examples/frameworks')]
    const isThere = (file: string) => roots.some((root) => existsSync(join(root, file)))
    expect(named.map(([, file]) => file as string).filter((file) => !isThere(file))).toEqual([])
  })
})
