/** Renders `docs/options.md` from the declarations of options and their comments, so that the page says what the types say. */
import { readdirSync, readFileSync } from 'node:fs'
import ts from 'typescript'

const NOTE = '<!-- Generated from the declarations of options by tools/docs.mjs: do not edit. -->'

/** What stands on the page: a heading, the declaration below it, and further names under which it is referred to. */
const SECTIONS = [
  ['## The diagnostics router', '`createDiagnosticsRouter(options)` of `relayscope`.', 'DiagnosticsRouterOptions'],
  ['### Limits', 'A host may lower each, never raise it.', 'RouterLimits'],
  [
    '### Authentication',
    '`resolveAdminAuth(options)`: [security](security.md#authentication).',
    'ResolveAdminAuthOptions',
  ],
  ['## Metrics', '`createMetrics(options)` of `relayscope/metrics`: [metrics](metrics.md).', 'MetricsOptions'],
  ['### Their labels', '', 'MetricLabels'],
  [
    '## Queues of BullMQ',
    '`createBullmqInspectors(options)` of `relayscope/bullmq`: [plugs](plugs.md#queues-of-bullmq).',
    'BullmqOptions',
  ],
  ['## Agents', '`createMcp(options)` of `relayscope/mcp`: [agents](agents.md).', 'McpOptions'],
  ['## Adapters', 'Beside the handler: [mounting](mounting.md).', 'MountOptions'],
  ['### A server of its own', '`startNodeServer(handler, options)`; `allowedHosts` too.', 'ListenOptions'],
  [
    '## Following WebSockets',
    '`followWebSockets(server, options)` of `relayscope/ws`: [plugs](plugs.md).',
    'FollowWebSocketsOptions',
  ],
  [
    '## Following Socket.IO',
    '`followSocketIo(io, options)` of `relayscope/socket.io`: [plugs](plugs.md).',
    'FollowSocketIoOptions',
  ],
  [
    '## Following a browser',
    '`followBrowser(browser, options)` of `relayscope/playwright`: [plugs](plugs.md).',
    'FollowBrowserOptions',
  ],
  ['## Facilities in memory', '`createMemoryFacilities(options)` of `relayscope/memory`.', 'MemoryFacilitiesOptions'],
  [
    '## Facilities in a shared store',
    '`createRedisFacilities(options)` of `relayscope/redis`.',
    'RedisFacilitiesOptions',
  ],
  ['### An observer', '`redisComposition(options)`: [shared store](shared-store.md).', 'RedisCompositionOptions'],
  ['### Watching a link', '`watchLink(client, options)`.', 'WatchLinkOptions'],
  ['## Connections', '', 'ConnectionOptions', 'ConnectionRegistryOptions'],
  ['## Contexts and browser windows', '', 'PresenceOptions', 'ContextRegistryOptions', 'BrowserWindowRegistryOptions'],
  ['## History', '', 'HistoryOptions', 'MessageHistoryOptions'],
  ['## Calls', '', 'RpcOptions', 'RpcCorrelatorOptions'],
  ['## Deduplicator', '', 'ClaimOptions', 'DeduplicatorOptions'],
  [
    '## Dispatcher',
    'A command may name its own `maxAttempts`, at most 100, and its own `deadlineMs`.',
    'DispatcherOptions',
    'CommandDispatcherOptions',
    'RedisDispatcherOptions',
  ],
  ['## The relay router', '`createCooperativeSiteRouter(options)`.', 'CooperativeSiteRouterOptions'],
  ['### Sites', '`createSiteRegistry(options)`, over a store `createRedisSiteRegistry`.', 'SiteOptions'],
  ['### Sessions', '`createSessionRegistry(options)`, over a store `createRedisSessionRegistry`.', 'SessionOptions'],
  ['### Event bus', '`createCooperativeSiteEventBus(options)`, over a store `createRedisEventBus`.', 'EventBusOptions'],
  ['### Idempotency keys', '`createIdempotencyStore(options)`.', 'IdempotencyStoreOptions'],
  ['## The control server', '`startCooperativeSiteControlServer(options)`.', 'CooperativeSiteControlServerOptions'],
  ['### Its timeouts', '', 'ControlServerTimeouts'],
].map(([heading, text, name, ...aliases]) => ({ heading, text, name, aliases }))

const PLACES = { memory: 'In memory only.', redis: 'Over a shared store only.' }

/** Interfaces of the sources by name, and what constants are set to by `typeof` theirs. */
function declarationsOf(root) {
  const found = new Map()
  for (const path of readdirSync(new URL('src/', root), { recursive: true })) {
    if (!path.endsWith('.ts')) continue
    const source = readFileSync(new URL(`src/${path}`, root), 'utf8')
    for (const node of ts.createSourceFile(path, source, ts.ScriptTarget.Latest, true).statements) {
      if (ts.isInterfaceDeclaration(node)) found.set(node.name.text, node)
      if (!ts.isVariableStatement(node)) continue
      for (const { name, initializer } of node.declarationList.declarations)
        found.set(`typeof ${name.getText()}`, initializer)
    }
  }
  return found
}

const literalsIn = (type) =>
  (ts.isUnionTypeNode(type) ? type.types : [type]).map((each) => each.getText().replaceAll("'", ''))

const byName = (members) => members.map((member) => [member.name.getText(), member])

/** Members by name: its own, those of its schema, and those that it extends, as `Omit` and `Pick` leave them. */
function membersOf(declarations, name) {
  const node = declarations.get(name)
  if (node === undefined) throw new Error(`no declaration of ${name}`)
  if (ts.isCallExpression(node)) return new Map(byName(node.arguments[0].properties))
  const members = new Map(byName(node.members))
  for (const { expression, typeArguments = [] } of (node.heritageClauses ?? []).flatMap(({ types }) => types)) {
    const wrapper = expression.getText()
    const [inner, names] = typeArguments
    const wrapped = wrapper === 'Omit' || wrapper === 'Pick'
    const extended = wrapped || wrapper === 'Input' ? inner.getText() : wrapper
    for (const [key, member] of membersOf(declarations, extended)) {
      const isLeft = !wrapped || literalsIn(names).includes(key) === (wrapper === 'Pick')
      if (isLeft && !members.has(key)) members.set(key, member)
    }
  }
  return members
}

const cell = (text) => text.replaceAll(/\s+/g, ' ').replaceAll('|', '\\|').trim()

const PLAIN = { text: 'string', flag: 'boolean', object: 'object' }

/** What an option of a schema takes, and whether a host may leave it out. */
function typeOfSchema(declarations, schema) {
  if (ts.isIdentifier(schema)) return typeOfSchema(declarations, declarations.get(`typeof ${schema.text}`))
  const { expression, typeArguments } = schema
  if (ts.isPropertyAccessExpression(expression)) {
    const inner = typeOfSchema(declarations, expression.expression)
    return expression.name.text === 'nullable'
      ? { ...inner, type: `${inner.type} | null` }
      : { ...inner, isOptional: true }
  }
  const maker = expression.text
  const named = maker === 'derived' ? undefined : typeArguments?.[0].getText()
  if (maker === 'hook') return { type: `(${named}) | null`, isOptional: true }
  return {
    type: named ?? PLAIN[maker] ?? 'number',
    isOptional: !['whole', 'custom', 'having', 'func', 'list', ...Object.keys(PLAIN)].includes(maker),
  }
}

/** What a member takes, without the `undefined` that stands for leaving it out. */
function typeOf(declarations, member) {
  if (ts.isPropertyAssignment(member)) return typeOfSchema(declarations, member.initializer)
  return { type: typeOfMember(member), isOptional: member.questionToken !== undefined }
}

function typeOfMember(member) {
  if (ts.isMethodSignature(member)) return `(${member.parameters.map((each) => each.getText()).join(', ')}) => …`
  const types = ts.isUnionTypeNode(member.type) ? member.type.types : [member.type]
  const kept = types.map((type) => type.getText()).filter((text) => text !== 'undefined')
  return kept.length === 1 ? kept[0].replace(/^\((.*)\)$/s, '$1') : kept.join(' | ')
}

/** What is said of a member: its text and its default, which `Default:` in the text names where it takes a sentence. */
function textFrom(member) {
  const [comment] = ts.getJSDocCommentsAndTags(member).filter(ts.isJSDoc)
  const text = ts.getTextOfJSDocComment(comment?.comment) ?? ''
  const tag = (comment?.tags ?? []).find(({ tagName }) => tagName.text === 'default')
  return { text, given: tag && (ts.getTextOfJSDocComment(tag.comment) ?? '') }
}

// A value, and no words about one.
const VALUE = /^(?:\d+|true|false|null|'[^']*'|\{.*\}|[A-Za-z]+\.\w+|\w+\(\))$/

/** Where alone an option is taken, told by the folder of its declaration. */
const placeOf = (declaration) => PLACES[declaration.getSourceFile().fileName.split('/')[0]]

function row(declarations, name, member, headings, place) {
  const { text, given } = textFrom(member)
  const { type, isOptional } = typeOf(declarations, member)
  const heading = headings.get(type.replace(/^Partial<(.*)>$/, '$1'))
  const link = heading && `[${heading.toLowerCase()}](#${heading.toLowerCase().replaceAll(' ', '-')})`
  const what = [text, link && `See ${link}.`, place].filter(Boolean).join(' ')
  const said = given === undefined ? '–' : VALUE.test(given) ? `\`${given}\`` : cell(given)
  // What has a default is never required, though all of it is there once it is resolved.
  const value = isOptional || given !== undefined ? said : '**required**'
  return `| \`${name}\` | \`${cell(type)}\` | ${value} | ${cell(what)} |`
}

/** The whole page. `root` is the checkout. */
export function optionsDocument(root) {
  const declarations = declarationsOf(root)
  const headings = new Map(
    SECTIONS.flatMap(({ heading, name, aliases }) =>
      [name, ...aliases].map((each) => [each, heading.replace(/^#+ /, '')]),
    ),
  )
  const sections = SECTIONS.map(({ heading, text, name, aliases }) => {
    const members = membersOf(declarations, name)
    const rows = [...members].map(([key, member]) => row(declarations, key, member, headings))
    for (const alias of aliases)
      for (const [key, member] of membersOf(declarations, alias)) {
        if (members.has(key)) continue
        members.set(key, member)
        rows.push(row(declarations, key, member, headings, placeOf(declarations.get(alias))))
      }
    const table = ['| option | takes | default | what it is |', '|---|---|---|---|', ...rows].join('\n')
    return [heading, text, table].filter(Boolean).join('\n\n')
  })
  return [
    NOTE,
    '# Options',
    '',
    'Each factory takes one object. A bound is a whole number from 1, a time in whole milliseconds up to 2,147,483,647; what is',
    'not is a `RangeError` that names the option, when the factory is called; a name that there is not, an option that is missing\nand one that cannot be used are a `TypeError`. Over a shared store a bound on all is that of one shard.',
    '',
    sections.join('\n\n'),
    '',
  ].join('\n')
}
