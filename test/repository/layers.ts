/** The layers of `src` as data, and a check of imports against them. */
import { readdirSync } from 'node:fs'
import { join } from 'node:path'
import { type Import, ROOT, type SourceFile } from './imports.js'

interface Layer {
  /** Own paths: a file (`refusal.ts`), a folder (`contract/`), or a folder's types alone (`type cooperative-site/`). */
  own: string[]
  packages?: string[]
  node?: boolean
}

// What http may know of the contract: its grammar (pages, ids, bounds), no family and no inspector.
const GRAMMAR = ['page', 'ids', 'limits', 'digest', 'bad-record', 'json', 'checks'].map((name) => `contract/${name}.ts`)

// Modules below both stores.
const GROUND = ['contract/', 'rules/', 'refusal.ts', 'async/', 'event-ring/', 'spill/']

/** What each layer may import besides its own modules. Folders that are not listed are an error. */
const LAYERS: Record<string, Layer> = {
  'refusal.ts': { own: [] },
  'version.ts': { own: [] },
  'schemas.ts': { own: ['contract/', 'http/', 'views/', 'diagnostics/'] },
  'index.ts': { own: ['schemas.ts', 'contract/', 'refusal.ts', 'http/', 'views/', 'diagnostics/'] },
  'async/': { own: ['refusal.ts'] },
  'contract/': { own: ['refusal.ts', 'async/'], packages: ['zod'] },
  'rules/': { own: ['contract/', 'refusal.ts'] },
  'fair-share/': { own: [] },
  'event-ring/': { own: ['contract/'] },
  'spill/': { own: ['contract/', 'refusal.ts', 'async/'] },
  'http/': { own: ['refusal.ts', 'version.ts', 'async/', ...GRAMMAR, 'contract/options.ts'], packages: ['zod'] },
  'views/': { own: ['contract/', 'refusal.ts', 'async/'], packages: ['zod'] },
  'memory/': { own: [...GROUND, 'fair-share/'] },
  'redis/': { own: GROUND, packages: ['zod'] },
  'diagnostics/': { own: ['contract/', 'version.ts', 'async/', 'http/', 'views/'], packages: ['zod'] },
  'cooperative-site/': {
    // What is shared by several relays has a default for one.
    own: ['contract/', 'refusal.ts', 'async/', 'fair-share/', 'http/', 'memory/cooperative/'],
    packages: ['zod'],
  },
  // Facts about names, paths and options that have no dependency of their own.
  'adapters/': {
    own: ['http/guard.ts', 'http/body-consumed.ts', 'contract/checks.ts', 'async/hook.ts', 'type incident/'],
    node: true,
  },
  'relay-client/': { own: ['async/'] },
  'browser/': { own: ['async/', 'relay-client/', 'type contract/', 'contract/checks.ts'] },
  'publisher/': { own: ['async/', 'relay-client/', 'type contract/', 'contract/checks.ts'] },
  'control-server/': {
    own: ['contract/', 'async/', 'http/', 'publisher/', 'adapters/'],
    packages: ['zod'],
    node: true,
  },
  // What a router answers, kept as a file and answered by the same router.
  'incident/': {
    own: ['contract/', 'refusal.ts', 'version.ts', 'async/', 'http/', 'diagnostics/', 'relay-client/'],
    packages: ['zod'],
  },
  // The page's own files know the contract by its types.
  'dashboard/': {
    own: [
      'contract/ages.ts',
      'contract/checks.ts',
      'contract/digest.ts',
      'contract/evidence.ts',
      'contract/unseen.ts',
      'http/',
      'incident/compare.ts',
      'type contract/',
      'type views/',
      'type diagnostics/',
      'type incident/',
    ],
    packages: ['preact'],
  },
  'opentelemetry/': {
    own: ['contract/', 'version.ts', 'metrics/'],
    packages: ['@opentelemetry/api', '@opentelemetry/sdk-metrics'],
    node: true,
  },
  'probes/': { own: ['contract/', 'async/', 'http/'] },
  'metrics/': { own: ['contract/', 'version.ts', 'async/', 'http/', 'views/'], packages: ['zod'] },
  // They know their peer by what is used of it, and no facility but by its port.
  'plugs/': {
    own: ['async/', 'refusal.ts', 'contract/checks.ts', 'contract/call-counts.ts', 'type contract/'],
  },
  // The queues themselves are known by their shape.
  'bullmq/': { own: ['contract/', 'refusal.ts', 'async/'] },
  // An agent is shown what a router answers, whichever it is: none of our views and none of our families.
  'mcp/': {
    own: [
      'contract/ids.ts',
      'contract/checks.ts',
      'contract/options.ts',
      'contract/unseen.ts',
      'version.ts',
      'async/',
      'http/',
      'relay-client/',
    ],
    packages: ['zod', '@modelcontextprotocol/server'],
  },
  'testing/': { own: ['contract/', 'refusal.ts', 'async/'] },
  'cli/': { own: [''], packages: ['redis', '@modelcontextprotocol/server'], node: true },
}

/** The levels of a store, the lowest first; modules outside them are resources, or compose resources. */
const STORE_LEVELS: Record<string, string[]> = {
  'redis/': ['store/', 'table/', 'presence/'],
  'memory/': ['table/'],
}

/** The resources, with the same name in every layer: every folder of the shared store that is not one of its levels. */
const FAMILIES = readdirSync(join(ROOT, 'src/redis')).filter(
  (name) => !/\.ts$|^composition$/.test(name) && !STORE_LEVELS['redis/']?.includes(`${name}/`),
)

/** Families that stand on another one of their store, and on what of it. */
const FAMILY_IMPORTS: Record<string, string[]> = {
  // Whether a claim that has been won may be heard: the message is kept in the same step.
  'redis/history': ['redis/deduplicator/claims.lua'],
  // The newest event of a site stands where its topic counts.
  'redis/sites': ['redis/event-bus/last-events.ts'],
  // A call belongs to the instance that holds the client.
  'redis/rpc': ['redis/connections/format.ts'],
}

/** Single files that may import more than their layer. */
const EXTRA: Record<string, string[]> = {
  'http/match.ts': ['itty-router'],
  // The reference of the bucket port; asked for only when one is made, so that the layer loads without Node.
  'spill/object-store.ts': ['node:fs/promises'],
}

// Contract files are the vocabulary that families share (`ClientType`, `Instance`), so they may name each other.
const FAMILY_LAYERS = ['memory/', 'redis/', 'diagnostics/']

/** The layer of a path below `src`: its first folder, or the file itself at the top. */
function layerOf(path: string): string {
  const at = path.indexOf('/')
  return at < 0 ? path : path.slice(0, at + 1)
}

/** The family that a path below `src` belongs to, at any depth: the first folder or file that bears the name of one. */
function familyOf(path: string): string | undefined {
  const names = path.split('/').slice(1)
  return names.map((name) => name.replace(/\.ts$/, '')).find((name) => FAMILIES.includes(name))
}

/** Scripts write; modules that only read must not import them. `table/records.ts` is the writer of the tables. */
const isReader = (path: string) => /\/table\/(?!records\.ts)|\/inspector\.ts$|\/format\.ts$/.test(path)
const isWriter = (path: string) => /^redis\/.*\/(facility|script|scripts)\.ts$/.test(path)

/** What plugs share: how a facility follows what a peer does. */
const SHARED_BY_PLUGS = 'follow'
const plugOf = (path: string) => /^plugs\/([^/]+)\//.exec(path)?.[1]

/** Why an import within one store points the wrong way. */
function checkWithin(layer: string, path: string, target: string): string | undefined {
  if (isReader(path) && isWriter(target)) return 'a reader imports a writer'
  const [plug, other] = [plugOf(path), plugOf(target)]
  if (plug && other !== plug && other !== SHARED_BY_PLUGS) return 'one plug imports another'
  const levels = STORE_LEVELS[layer] ?? []
  const levelOf = (file: string) => levels.findIndex((level) => file.startsWith(layer + level))
  const [from, to] = [levelOf(path), levelOf(target)]
  if (from >= 0 && (to < 0 || to > from)) return 'imports a higher level of its store'
  if (!FAMILY_LAYERS.includes(layer)) return undefined
  const [family, another] = [familyOf(path), familyOf(target)]
  if (!family || !another || family === another) return undefined
  return FAMILY_IMPORTS[layer + family]?.includes(target) ? undefined : 'one family imports another'
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
  return checkWithin(name, path, target)
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

/** Permissions of the table that no import needs any more, as `who: what`. */
export function unusedPermissions(files: SourceFile[]): string[] {
  const importsBelow = (start: string) =>
    files.filter(({ path }) => path.startsWith(start)).flatMap(({ imports }) => imports)
  const unused = (who: string, rules: readonly string[], isUsed: (imported: Import, rule: string) => boolean) => {
    const imports = importsBelow(who)
    return rules.filter((rule) => !imports.some((imported) => isUsed(imported, rule))).map((rule) => `${who}: ${rule}`)
  }
  const isTarget = ({ target }: Import, rule: string) => target === rule
  return [
    ...Object.entries(LAYERS).flatMap(([layer, { own, packages = [], node }]) => [
      ...unused(layer, own, (imported, rule) => imported.own && permits(rule, imported)),
      ...unused(layer, packages, isTarget),
      ...unused(layer, node ? ['node:'] : [], ({ target }, rule) => target.startsWith(rule)),
    ]),
    ...Object.entries(FAMILY_IMPORTS).flatMap(([family, targets]) => unused(family, targets, isTarget)),
    ...Object.entries(EXTRA).flatMap(([file, targets]) => unused(file, targets, isTarget)),
  ]
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
