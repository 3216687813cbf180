/** Renders the pages of options from the declarations of options and their comments, so that the pages say what the types say. */
import { readdirSync, readFileSync } from 'node:fs'
import ts from 'typescript'

const NOTE = '<!-- Generated from the declarations of options by tools/docs.mjs: do not edit. -->'

/**
 * The pages, each with its file, title, first sentence and sections. A section is a heading, a text, the declaration that it
 * renders, and further names of the same options.
 */
const PAGES = [
  {
    path: 'docs/options-router.md',
    title: 'Options: router, metrics, MCP and servers',
    sections: [
      ['## Diagnostics router', '`createDiagnosticsRouter(options)` of `relayscope`.', 'DiagnosticsRouterOptions'],
      ['### Limits', 'You can lower each limit, never raise it.', 'RouterLimits'],
      [
        '### Authentication',
        '`resolveAdminAuth(options)`: [security](security.md#authentication).',
        'ResolveAdminAuthOptions',
      ],
      ['## Metrics', '`createMetrics(options)` of `relayscope/metrics`: [metrics](metrics.md).', 'MetricsOptions'],
      ['### Metric labels', '', 'MetricLabels'],
      ['## Probes', '`createProbes(options)` of `relayscope/probes`: [Kubernetes](kubernetes.md).', 'ProbesOptions'],
      [
        '## OpenTelemetry',
        '`instrumentation(options)` of `relayscope/opentelemetry`: [OpenTelemetry](opentelemetry.md).',
        'InstrumentationOptions',
      ],
      [
        '## Captures',
        '`captureIncident(router, options)` of `relayscope/incident`: [incidents](incidents.md).',
        'CaptureOptions',
      ],
      [
        '## Flight recorder',
        '`createFlightRecorder(options)` of `relayscope/incident`: [the last hour](incidents.md#the-last-hour).',
        'FlightRecorderOptions',
      ],
      [
        '### Directory of a recording',
        '`recordingDirectory(options)` of `relayscope/node`.',
        'RecordingDirectoryOptions',
      ],
      [
        '### Captures of the last minutes',
        '`captureLast(router, options)` of `relayscope/incident`.',
        'CaptureLastOptions',
      ],
      ['## MCP', '`createMcp(options)` of `relayscope/mcp`: [agents over MCP](mcp.md).', 'McpOptions'],
      ['## Adapters', 'The second argument of each adapter: [adapters](adapters.md).', 'MountOptions'],
      [
        '### Node server',
        '`startNodeServer(handler, options)` of `relayscope/node`. It also takes `allowedHosts`.',
        'ListenOptions',
      ],
    ],
  },
  {
    path: 'docs/options-integrations.md',
    title: 'Options: integrations',
    sections: [
      ['## ws', '`followWebSockets(server, options)` of `relayscope/ws`: [ws](ws.md).', 'FollowWebSocketsOptions'],
      [
        '## Socket.IO',
        '`followSocketIo(io, options)` of `relayscope/socket.io`: [Socket.IO](socketio.md).',
        'FollowSocketIoOptions',
      ],
      [
        '## Event streams',
        '`followEventStreams(options)` and `followEventStream(response, options)` of `relayscope/follow`: [event streams](integrations.md#event-streams).',
        'FollowEventStreamOptions',
      ],
      [
        '## MCP sessions',
        '`followMcpSessions(options)` and `followMcp(transport, options)` of `relayscope/follow`: [acknowledgements](acknowledgements.md#mcp).',
        'FollowMcpOptions',
      ],
      [
        '## Playwright',
        '`followBrowser(browser, options)` of `relayscope/playwright`: [Playwright](playwright.md).',
        'FollowBrowserOptions',
      ],
      ['## BullMQ', '`createBullmqInspectors(options)` of `relayscope/bullmq`: [BullMQ](bullmq.md).', 'BullmqOptions'],
    ],
  },
  {
    path: 'docs/options-facilities.md',
    title: 'Options: facilities in memory and in Redis',
    sections: [
      [
        '## Facilities in memory',
        '`createMemoryFacilities(options)` of `relayscope/memory`: [memory or Redis](shared-store.md).',
        'MemoryFacilitiesOptions',
      ],
      [
        '## Facilities in Redis',
        '`createRedisFacilities(options)` of `relayscope/redis`: [memory or Redis](shared-store.md).',
        'RedisFacilitiesOptions',
      ],
      ['### Observer', '`redisComposition(options)`: [memory or Redis](shared-store.md).', 'RedisCompositionOptions'],
      ['### Link watcher', '`watchLink(client, options)`.', 'WatchLinkOptions'],
      ['## Connections', '', 'ConnectionOptions', 'ConnectionRegistryOptions'],
      [
        '## Contexts and browser windows',
        '',
        'PresenceOptions',
        'ContextRegistryOptions',
        'BrowserWindowRegistryOptions',
      ],
      ['## History', '', 'HistoryOptions', 'MessageHistoryOptions'],
      ['## Calls', '', 'RpcOptions', 'RpcCorrelatorOptions'],
      ['## Deduplicator', '', 'ClaimOptions', 'DeduplicatorOptions'],
      [
        '## Dispatcher',
        'A command can set its own `max_attempts`, at most 100, and its own `deadline_ms`.',
        'DispatcherOptions',
        'CommandDispatcherOptions',
        'RedisDispatcherOptions',
      ],
    ],
  },
  {
    path: 'docs/options-cooperative-sites.md',
    title: 'Options: cooperative sites and the control server',
    sections: [
      [
        '## Relay router',
        '`createCooperativeSiteRouter(options)` of `relayscope/cooperative-site`: [host a relay](site-hosts.md).',
        'CooperativeSiteRouterOptions',
      ],
      ['### Sites', '`createSiteRegistry(options)`; in Redis `createRedisSiteRegistry`.', 'SiteOptions'],
      ['### Sessions', '`createSessionRegistry(options)`; in Redis `createRedisSessionRegistry`.', 'SessionOptions'],
      ['### Event bus', '`createCooperativeSiteEventBus(options)`; in Redis `createRedisEventBus`.', 'EventBusOptions'],
      ['### Idempotency keys', '`createIdempotencyStore(options)`.', 'IdempotencyStoreOptions'],
      [
        '## Control server',
        '`startCooperativeSiteControlServer(options)` of `relayscope/control-server`: [control server](control-server.md).',
        'CooperativeSiteControlServerOptions',
      ],
      ['### Control server timeouts', '', 'ControlServerTimeouts'],
    ],
  },
].map(({ path, title, sections }) => ({
  path,
  title,
  sections: sections.map(([heading, text, name, ...aliases]) => ({ heading, text, name, aliases })),
}))

const PLACES = { memory: 'In memory only.', redis: 'In Redis only.' }

/** Interfaces of the sources by name, and what constants are set to by `typeof` theirs. */
export function declarationsOf(root) {
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

/** Members of an object of options; `...Other.shape` stands for those of `Other`. */
const membersIn = (declarations, { properties }) =>
  properties.flatMap((property) => {
    if (!ts.isSpreadAssignment(property)) return byName([property])
    return [...membersOf(declarations, `typeof ${property.expression.expression.getText()}`)]
  })

/** `typeof X` of `Input<typeof X>` and `Read<typeof X>`, else the name itself, without its parameters. */
const schemaIn = (name) => /^(?:Input|Read)<(typeof \w+)>$/.exec(name)?.[1] ?? name.replace(/<.*/, '')

/** Members by name: its own, those of its schema, and those that it extends, as `Omit` and `Pick` leave them. */
function membersOf(declarations, name) {
  const node = declarations.get(name)
  if (node === undefined) throw new Error(`no declaration of ${name}`)
  if (ts.isCallExpression(node)) return new Map(membersIn(declarations, node.arguments[0]))
  const members = new Map(byName(node.members))
  for (const type of (node.heritageClauses ?? []).flatMap(({ types }) => types)) {
    const { expression, typeArguments = [] } = type
    const wrapper = expression.getText()
    const [inner, names] = typeArguments
    const wrapped = wrapper === 'Omit' || wrapper === 'Pick'
    const extended = schemaIn(wrapped ? inner.getText() : type.getText())
    for (const [key, member] of membersOf(declarations, extended)) {
      const isLeft = !wrapped || literalsIn(names).includes(key) === (wrapper === 'Pick')
      if (isLeft && !members.has(key)) members.set(key, member)
    }
  }
  return members
}

export const cell = (text) => text.replaceAll(/\s+/g, ' ').replaceAll('|', '\\|').trim()

const PLAIN = { text: 'string', textOrNull: 'string | null', secret: 'string', flag: 'boolean', object: 'object' }

/** What an option of a schema takes, and whether a host may leave it out. */
function typeOfSchema(declarations, schema) {
  if (ts.isIdentifier(schema)) {
    const found = declarations.get(`typeof ${schema.text}`)
    const isObject = ts.isCallExpression(found) && found.expression.getText() === 'defineOptions'
    return isObject ? { type: schema.text, isOptional: false } : typeOfSchema(declarations, found)
  }
  const { expression, typeArguments } = schema
  if (ts.isPropertyAccessExpression(expression)) {
    const inner = typeOfSchema(declarations, expression.expression)
    return expression.name.text === 'pipe' ? inner : { ...inner, isOptional: true }
  }
  const maker = expression.text
  const named = maker === 'derived' ? undefined : typeArguments?.[0].getText()
  if (maker === 'hook') return { type: `(${named}) | null`, isOptional: true }
  return {
    type: named ?? PLAIN[maker] ?? (maker === 'origins' ? 'string[]' : 'number'),
    isOptional: !['whole', 'custom', 'withMethods', 'madeBy', 'func', 'list', ...Object.keys(PLAIN)].includes(maker),
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
export function textFrom(member) {
  const [comment] = ts.getJSDocCommentsAndTags(member).filter(ts.isJSDoc)
  const text = ts.getTextOfJSDocComment(comment?.comment) ?? ''
  const tag = (comment?.tags ?? []).find(({ tagName }) => tagName.text === 'default')
  return { text, given: tag && (ts.getTextOfJSDocComment(tag.comment) ?? '') }
}

// A value, and no words about one.
const VALUE = /^(?:\d+|true|false|null|'[^']*'|\{.*\}|[A-Za-z]+\.\w+|\w+\(\))$/

/** Where alone an option is taken, told by the folder of its declaration. */
const placeOf = (declaration) => PLACES[declaration.getSourceFile().fileName.split('/')[0]]

/** `heading` as the fragment that leads to it. */
const fragmentOf = (heading) =>
  heading
    .toLowerCase()
    .replaceAll(/[^\w\s-]/g, '')
    .replaceAll(' ', '-')

function row(declarations, name, member, place, links) {
  const { text, given } = textFrom(member)
  const { type, isOptional } = typeOf(declarations, member)
  const link = links.get(type.replace(/^Partial<(.*)>$/, '$1'))
  const what = [text, link && `See ${link}.`, place].filter(Boolean).join(' ')
  const said = given === undefined ? '–' : VALUE.test(given) ? `\`${given}\`` : cell(given)
  // What has a default is never required, though all of it is there once it is resolved.
  const value = isOptional || given !== undefined ? said : '**required**'
  return `| \`${name}\` | \`${cell(type)}\` | ${value} | ${cell(what)} |`
}

function sectionText(declarations, { heading, text, name, aliases }, links) {
  const members = membersOf(declarations, name)
  const rows = [...members].map(([key, member]) => row(declarations, key, member, undefined, links))
  for (const alias of aliases)
    for (const [key, member] of membersOf(declarations, alias)) {
      if (members.has(key)) continue
      members.set(key, member)
      rows.push(row(declarations, key, member, placeOf(declarations.get(alias)), links))
    }
  const table = ['| option | type | default | description |', '|---|---|---|---|', ...rows].join('\n')
  return [heading, text, table].filter(Boolean).join('\n\n')
}

/** Links from the page at `path` to the sections of all pages, by the name of what each renders. */
function linksFrom(path) {
  const links = new Map()
  for (const page of PAGES)
    for (const { heading, name, aliases } of page.sections) {
      const title = heading.replace(/^#+ /, '')
      const file = page.path === path ? '' : page.path.replace('docs/', '')
      for (const each of [name, ...aliases]) links.set(each, `[${title.toLowerCase()}](${file}#${fragmentOf(title)})`)
    }
  return links
}

/** Every page of options by its path. `root` is the checkout. */
export function optionsDocuments(root) {
  const declarations = declarationsOf(root)
  return new Map(
    PAGES.map(({ path, title, sections }) => {
      const links = linksFrom(path)
      const texts = sections.map((section) => sectionText(declarations, section, links))
      const intro = 'How options work: [imports](imports.md#options).'
      return [path, [NOTE, `# ${title}`, '', intro, '', texts.join('\n\n'), ''].join('\n')]
    }),
  )
}
