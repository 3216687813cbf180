/** The direction table of the house as data, and what of a set of files breaks it. */
import type { Import, SourceFile } from './imports.js'

/** The families that bear the same file name in every layer. */
export const FAMILIES = ['history', 'connections', 'rpc', 'deduplicator', 'contexts', 'browser-windows', 'delivery']

interface Layer {
  /** Own paths: a file (`refusal.ts`), a folder (`contract/`), or a folder's types alone (`type cooperative-site/`). */
  own: string[]
  packages?: string[]
  node?: boolean
}

// What http may know of the contract: its grammar (pages, ids, bounds), no family and no inspector.
const GRAMMAR = ['page', 'ids', 'limits', 'digest', 'json'].map((name) => `contract/${name}.ts`)

/** What each layer may import beside itself. A folder that is not listed may not exist. */
export const LAYERS: Record<string, Layer> = {
  'refusal.ts': { own: [] },
  'version.ts': { own: [] },
  'index.ts': { own: ['contract/', 'refusal.ts', 'version.ts', 'http/', 'views/', 'diagnostics/'] },
  'contract/': { own: ['refusal.ts'], packages: ['zod'] },
  'http/': { own: ['refusal.ts', ...GRAMMAR], packages: ['zod'] },
  'views/': { own: ['contract/', 'refusal.ts'], packages: ['zod'] },
  'memory/': { own: ['contract/', 'refusal.ts'], packages: ['zod'] },
  'redis/': { own: ['contract/', 'refusal.ts'], packages: ['zod'] },
  'diagnostics/': { own: ['contract/', 'refusal.ts', 'version.ts', 'http/', 'views/'], packages: ['zod'] },
  'cooperative-site/': { own: ['contract/', 'refusal.ts', 'http/'], packages: ['zod'] },
  // Facts about names and paths that have no dependency of their own.
  'adapters/': { own: ['http/spelling.ts', 'http/guard.ts'], node: true },
  'browser/': { own: ['type cooperative-site/', 'type contract/'] },
  'publisher/': { own: ['type cooperative-site/', 'type contract/'] },
  'control-server/': {
    own: ['contract/', 'refusal.ts', 'http/', 'cooperative-site/', 'publisher/', 'adapters/'],
    packages: ['zod'],
    node: true,
  },
  'testing/': { own: ['contract/', 'refusal.ts', 'memory/'] },
  'cli/': { own: [''], packages: ['redis'], node: true },
}

/** Single files that may import more than their layer. */
const EXTRA: Record<string, string[]> = {
  'diagnostics/router.ts': ['itty-router'],
  'cooperative-site/router.ts': ['itty-router'],
  // The reference of the bucket port; asked for only when one is made, so that the layer loads without Node.
  'redis/file-bucket.ts': ['node:fs/promises'],
}

// Contract files are the vocabulary that families share (`ClientType`, `Instance`), so they may name each other.
const FAMILY_LAYERS = ['memory/', 'redis/', 'diagnostics/']

/** The layer of a path below `src`: its first folder, or the file itself at the top. */
export function layerOf(path: string): string {
  const at = path.indexOf('/')
  return at < 0 ? path : path.slice(0, at + 1)
}

/** The family that a path below `src` belongs to, as a file or as a folder of its layer. */
function familyOf(path: string): string | undefined {
  const name = path.split('/')[1]?.replace(/\.ts$/, '')
  return FAMILIES.find((family) => family === name)
}

function permits(rule: string, { target, typeOnly }: Import): boolean {
  const [, type, path] = /^(type )?(.*)$/.exec(rule) as unknown as [string, string | undefined, string]
  return (type === undefined || typeOnly) && (path.endsWith('.ts') ? target === path : target.startsWith(path))
}

function checkImport(path: string, imported: Import): string | undefined {
  const name = layerOf(path)
  const layer = LAYERS[name]
  if (!layer) return `${name} is no layer of the table`
  const { target, own } = imported
  if (!own) {
    if (EXTRA[path]?.includes(target)) return undefined
    if (target.startsWith('node:')) return layer.node ? undefined : 'must run where there is no Node'
    return layer.packages?.includes(target) ? undefined : 'is no package of this layer'
  }
  if (target.startsWith('..')) return 'reaches out of src'
  if (target === `${name}index.ts`) return "imports its own folder's face"
  if (layerOf(target) !== name) {
    if (layerOf(target) === 'cli/') return 'nothing imports the command line'
    return layer.own.some((rule) => permits(rule, imported)) ? undefined : 'points against the direction table'
  }
  if (!FAMILY_LAYERS.includes(name)) return undefined
  const [from, to] = [familyOf(path), familyOf(target)]
  return from && to && from !== to ? 'one family imports another' : undefined
}

/** Every import that breaks the table, as `from → to: why`. */
export function misdirected(files: SourceFile[]): string[] {
  return files.flatMap(({ path, imports }) =>
    imports.flatMap((imported) => {
      const why = checkImport(path, imported)
      return why ? [`${path} → ${imported.target}: ${why}`] : []
    }),
  )
}

/** Every circle of imports, as the paths along it. */
export function circles(files: SourceFile[]): string[] {
  const graph = new Map(files.map(({ path, imports }) => [path, imports.filter((i) => i.own).map((i) => i.target)]))
  const found: string[] = []
  const done = new Set<string>()
  const walk = (path: string, trail: string[]): void => {
    const at = trail.indexOf(path)
    if (at >= 0) found.push([...trail.slice(at), path].join(' → '))
    if (at >= 0 || done.has(path)) return
    for (const next of graph.get(path) ?? []) walk(next, [...trail, path])
    done.add(path)
  }
  for (const path of graph.keys()) walk(path, [])
  return found
}
