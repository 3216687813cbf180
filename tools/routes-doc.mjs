/** Renders the route tables of the documents from the OpenAPI document, which is made from the router's own routes. */

const NOTE = '<!-- Generated from the routes of the router by tools/docs.mjs: do not edit. -->'

/** `node`, or what it refers to. */
function resolve(document, node) {
  const path = node?.$ref?.slice(2).split('/')
  return path ? path.reduce((value, key) => value[key.replaceAll('~1', '/').replaceAll('~0', '~')], document) : node
}

function operations(document) {
  return Object.entries(document.paths).map(([path, item]) => ({ path, ...item.get }))
}

function parametersOf(document, { parameters = [] }, place) {
  return parameters.map((given) => resolve(document, given)).filter((parameter) => parameter.in === place)
}

const code = (text) => `\`${text}\``

function capability({ 'x-capability': one, 'x-any-capability': any }) {
  return any ? 'any of several' : one ? code(one) : '–'
}

/** What a parameter takes, as far as its schema says it in a few words. */
function domainOf(document, given) {
  const schema = resolve(document, given.schema)
  if (schema.enum) return schema.enum.map(code).join(' ')
  if (schema.type === 'array') return `text, at most ${schema.maxItems} times`
  if (schema.type === 'boolean') return '`true` `false`'
  const range = `${schema.minimum}–${schema.maximum}`
  if (schema.type === 'integer') return schema.default === undefined ? range : `${range}, default ${schema.default}`
  if (schema.examples) return `an instant, such as ${schema.examples.map(code).join(' or ')}`
  return schema.maxLength ? `text, at most ${schema.maxLength} bytes` : 'text'
}

/** One line per route: what it answers and what it takes, required parameters in bold. */
export function routeTable(document) {
  const rows = operations(document).map((operation) => {
    const query = parametersOf(document, operation, 'query')
    const names = query.map(({ name, required }) => (required ? `**${code(name)}**` : code(name))).join(' ')
    return `| ${code(operation.path)} | ${operation.summary} | ${names} | ${capability(operation)} |`
  })
  return ['| path | returns | query | needs |', '|---|---|---|---|', ...rows].join('\n')
}

/** Statuses that every route returns. */
function commonStatuses(document) {
  const [first, ...others] = operations(document).map(({ responses }) => Object.keys(responses))
  return first.filter((status) => others.every((statuses) => statuses.includes(status)))
}

/** Parameters of most lists: stated once. */
const PAGED = { limit: '1–500, default 100', cursor: 'text, at most 512 bytes' }

function section(document, operation, common) {
  const { path, operationId, summary, responses } = operation
  const taken = [...parametersOf(document, operation, 'path'), ...parametersOf(document, operation, 'query')]
  const isPaged = Object.entries(PAGED).every(([name, domain]) =>
    taken.some((parameter) => parameter.name === name && domainOf(document, parameter) === domain),
  )
  const own = isPaged ? taken.filter(({ name }) => !Object.hasOwn(PAGED, name)) : taken
  const parameters = own.map((parameter) => {
    const how = `${parameter.in}${parameter.required ? ', required' : ''}`
    return `| ${code(parameter.name)} | ${how} | ${domainOf(document, parameter)} |`
  })
  const statuses = Object.keys(responses).filter((status) => !common.includes(status))
  const returns = statuses.length ? ` Also returns ${statuses.map(code).join(' ')}.` : ''
  const requires = operation['x-any-capability']?.map(code).join(' or ') ?? capability(operation)
  return [
    `## ${code(`GET ${path}`)}`,
    '',
    `${summary}. Operation ${code(operationId)}. Needs: ${requires}.${returns}${isPaged ? ' Paged.' : ''}`,
    ...(parameters.length ? ['', '| parameter | in | values |', '|---|---|---|', ...parameters] : []),
  ].join('\n')
}

const INTRO = [
  'The routes of the diagnostics router, below its mount prefix. Each answers GET and HEAD, and callers that `auth`',
  'accepts: [security](security.md). Cooperative sites and MCP have their own: [site hosts](site-hosts.md), [MCP](mcp.md).',
  'A route whose inspector is missing returns 501. The same as data: `GET /openapi.json`, or `openApiDocument()`.',
  'With a [flight recorder](incidents.md#the-last-hour) each is also below `/at/{epoch ms}`, as of that instant.',
]

/** The pages of routes by their paths: the table of all routes, and the parameters of each. */
export function routesDocuments(document) {
  const common = commonStatuses(document)
  const parameters = operations(document).map((operation) => section(document, operation, common))
  return new Map([
    [
      'docs/routes.md',
      [
        NOTE,
        '# Routes',
        '',
        ...INTRO,
        'Values of each parameter, operation ids and statuses: [route parameters](route-parameters.md).',
        '',
        'Parameters in bold are required. "Needs" names the capability that the route reads.',
        '',
        routeTable(document),
        '',
      ].join('\n'),
    ],
    [
      'docs/route-parameters.md',
      [
        NOTE,
        '# Route parameters',
        '',
        `All routes in one table: [routes](routes.md). Each returns ${common.map(code).join(' ')}.`,
        `A route that is paged takes ${Object.entries(PAGED)
          .map(([name, domain]) => `${code(name)} (${domain})`)
          .join(' and ')}.`,
        '',
        parameters.join('\n\n'),
        '',
      ].join('\n'),
    ],
  ])
}
