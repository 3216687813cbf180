/** Renders the page of the fields of inputs: types from the schemas that refuse other fields, texts from their comments. */
import { buildSync } from 'esbuild'
import ts from 'typescript'
import { cell, declarationsOf, textFrom } from './options-doc.mjs'

const NOTE = '<!-- Generated from the schemas of inputs by tools/docs.mjs: do not edit. -->'

/** Calls, the schema of their input, and its module in `src/internal/contract`. */
const INPUTS = [
  ['connections.connect(client)', 'ConnectInput', 'connections'],
  ['contexts.report(context)', 'ReportContextInput', 'contexts'],
  ['browserWindows.report(window)', 'ReportBrowserWindowInput', 'browser-windows'],
  ['dispatcher.dispatch(command)', 'DispatchInput', 'delivery-dispatch'],
  ['dispatcher.attach(client, deliver)` and `connections.isCurrentInstance(client)', 'Instance', 'connections'],
  ['dispatcher.acknowledge(command)', 'AcknowledgeInput', 'delivery-dispatch'],
  ['dispatcher.settle(command)', 'SettleInput', 'delivery-dispatch'],
  ['dispatcher.cancel(command)', 'CancelInput', 'delivery-dispatch'],
  ['rpc.open(call)', 'OpenCallInput', 'rpc'],
  ['rpc.settle(correlation_id, outcome)', 'SettleCallInput', 'rpc'],
  ['rpc.observe(report)', 'ObserveCallsInput', 'rpc'],
  ['history.append(message)` and `history.retain(message)', 'AppendInput', 'history'],
  ['deduplicator.claim(message)` and `deduplicator.release(message)', 'ClaimInput', 'deduplicator'],
  ['sites.put(site)', 'SiteInput', 'sites'],
  ['sites.delete(site_id, options)', 'DeleteSiteInput', 'sites'],
  ['sessions.open(session)', 'OpenSessionInput', 'sessions'],
  ['sessions.share(session_id, share)', 'SessionShare', 'sessions'],
  ['subscriptions.add(stream)', 'ViewerStreamInput', 'subscriptions'],
  ['bus.publish(topic, event)` and `bus.publishOnce(topic, event)', 'PublishedEvent', 'event-bus'],
  ['bus.subscribe(topic, options)', 'SubscribeInput', 'event-bus'],
  [
    'idempotency.claim(claim)`, `idempotency.keep(claim, answer)` and `idempotency.release(claim)',
    'IdempotencyClaim',
    'invocations',
  ],
]

/** Types that JSON does not have. */
const OBJECTS = { signal: '`AbortSignal`', state: 'function', wake: 'function' }

/** Evaluates the schemas from the source. */
async function loadSchemas(root) {
  const lines = INPUTS.map(([, name, module]) => `export { ${name} } from './src/internal/contract/${module}.js'`)
  const { outputFiles } = buildSync({
    stdin: {
      contents: [...lines, "export { toJSONSchema } from 'zod'"].join('\n'),
      resolveDir: root.pathname,
      loader: 'ts',
    },
    bundle: true,
    format: 'esm',
    platform: 'node',
    write: false,
  })
  return import(`data:text/javascript;base64,${Buffer.from(outputFiles[0].contents).toString('base64')}`)
}

/** The type of a value, as a reader of JavaScript calls it. */
function typeOf({ type, enum: values, const: constant, anyOf, items }) {
  if (constant !== undefined) return `\`${JSON.stringify(constant)}\``
  if (values) return values.map((value) => `\`${JSON.stringify(value)}\``).join(' ')
  if (anyOf) return [...new Set(anyOf.map(typeOf))].join(' or ')
  if (type === 'array') return `array of ${typeOf(items ?? {})}`
  return type === undefined ? 'any JSON' : [type].flat().join(' or ')
}

/** Texts of the fields that the schema `name` declares, by field. */
function textsOf(declarations, name) {
  let call = declarations.get(`typeof ${name}`)
  // Below `inputObject({ … }).refine(…)`.
  while (ts.isPropertyAccessExpression(call.expression)) call = call.expression.expression
  const fields = call.arguments[0].properties.filter(ts.isPropertyAssignment)
  return new Map(fields.map((field) => [field.name.getText(), textFrom(field)]))
}

function tableOf({ properties, required = [] }, texts) {
  const rows = Object.entries(properties).map(([name, schema]) => {
    const { text = schema.description ?? '', given } = texts.get(name) ?? {}
    const value = required.includes(name) ? '**required**' : cell(given ?? 'none')
    const type = cell((!schema.type && !schema.anyOf && OBJECTS[name]) || typeOf(schema))
    return `| \`${name}\` | ${type} | ${value} | ${cell(text)} |`
  })
  return ['| field | type | default | description |', '|---|---|---|---|', ...rows].join('\n')
}

/** Returns the page. */
export async function inputsDocument(root) {
  const schemas = await loadSchemas(root)
  const declarations = declarationsOf(root)
  const sections = INPUTS.map(([call, name]) => {
    const schema = schemas.toJSONSchema(schemas[name], { io: 'input', unrepresentable: 'any', reused: 'inline' })
    return `## \`${call}\`\n\n${tableOf(schema, textsOf(declarations, name))}\n`
  })
  return `${NOTE}
# Fields of inputs

Which fields does an input have? A field that is not listed is refused by name. Ids are 1 to 256 bytes of UTF-8. When to make
a call, and what it returns: [facility calls](facility-calls.md). \`ingest(message)\` has the fields of \`history.append\`.

${sections.join('\n')}`
}
