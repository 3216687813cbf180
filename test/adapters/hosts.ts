/** The hosts of the battery, and where a platform decides differently before our code runs. */
import type { Difference, Host } from './battery.js'
import type { Expectation } from './requests.js'
import { bun, deno, nodes, workerd } from './runtimes.js'
import type { Spelling } from './spellings.js'
import { runBun, runDeno, runNode, runWorkerd } from './start.js'
import { PREFIX } from './subject.js'

const ECHOED: Expectation = { status: 200, body: '{"method":"GET","path":"/echo","search":"","key":null}' }
const NOT_FOUND: Expectation = { status: 404, body: '"not found"' }
/** The platform's own words, or its silence. */
const platform = (status: number | null): Expectation => ({ status, body: null })

type Differences = Record<string, Difference>

const same = (because: string, expect: Expectation, names: string[]): Differences =>
  Object.fromEntries(names.map((name) => [name, { because, expect }]))

const onNode: Differences = {
  ...same('Node closes the connection of a CONNECT without a listener', platform(null), ['method CONNECT']),
  ...same('Node’s parser knows no such method', platform(400), ['method get']),
}

const RESOLVED = 'the runtime resolves the URL and shows no other form of it'
const resolved: Differences = {
  ...same(RESOLVED, ECHOED, ['target with a fragment', 'target in absolute form']),
  ...same(RESOLVED, platform(200), ['target with raw bytes']),
}

const onDeno: Differences = {
  ...resolved,
  ...same('Deno knows no CONNECT', platform(400), ['method CONNECT']),
  ...same('Deno refuses it by itself', platform(400), ['two Hosts']),
}

const BACKSLASH = 'Bun and workerd make a slash of it'
const slashed: Differences = same(BACKSLASH, ECHOED, ['target with a backslash'])

const onBun: Differences = {
  ...resolved,
  ...slashed,
  ...same('Bun turns it into two slashes and passes it to the host', platform(404), ['target /\\']),
  ...same('Bun’s parser closes the connection', platform(null), ['method get']),
}

const BARE = 'without an adapter the handler meets every path that the runtime made of the target'
const bare: Differences = same(BARE, NOT_FOUND, ['target /\\'])
const THROWS = ['a handler that throws', 'a handler that rejects']
const OWN_WORDS = 'without an adapter the runtime answers for a handler that fails, in its own words; ours never fail'

const onBareBun: Differences = {
  ...onBun,
  ...bare,
  ...same(OWN_WORDS, platform(500), THROWS),
  ...same(OWN_WORDS, platform(204), ['a handler that answers nothing']),
  ...same('Bun shows the first Host alone', ECHOED, ['two Hosts']),
}

const FROM_HOST = 'workerd builds the URL from Host unread; its edge refuses such a Host before'
const onWorkerd: Differences = {
  ...resolved,
  ...slashed,
  ...bare,
  ...same(OWN_WORDS, platform(500), [...THROWS, 'a handler that answers nothing', 'method CONNECT']),
  ...same('workerd’s parser knows no such method', platform(501), ['method get']),
  ...same(FROM_HOST, platform(200), [`Host "localhost${PREFIX}/echo?"`, 'Host "user@localhost"']),
  ...same(FROM_HOST, NOT_FOUND, ['Host "localhost#"']),
  ...same(FROM_HOST, platform(400), ['Host ""']),
}

const ALONE: Spelling = { refused: 400 }
const PASSED_ON: Spelling = { refused: 404 }
const RESOLVED_BEFORE: Spelling = { refused: 404, resolves: true }

type OnNode = Omit<Host, 'start'> & { file: string }

/** What runs on Node with an adapter of the library, each from its file of `hosts/`. */
const adapted: OnNode[] = [
  { file: 'node', name: 'node:http', spelling: ALONE },
  { file: 'express', name: 'Express 5', spelling: PASSED_ON, own: { notFound: 'Cannot GET /elsewhere' } },
  { file: 'hono-node', name: 'Hono', spelling: { refused: 404, dots: 400 }, own: { notFound: '404 Not Found' } },
]

/** What takes the adapter of `node:http`, by a recipe. */
const byRecipe: OnNode[] = [
  { file: 'fastify', name: 'Fastify', spelling: PASSED_ON, own: { notFound: 'Route GET:/elsewhere not found' } },
  { file: 'koa', name: 'Koa', spelling: PASSED_ON, own: { notFound: 'Not Found' } },
]

const onThisNode = ({ file, name, ...host }: OnNode): Host => ({
  differs: onNode,
  ...host,
  name: `${name} on this Node`,
  start: () => runNode(process.execPath, file),
})

/** Hosts on the Node that runs the tests. */
export const hosts: Host[] = adapted.map(onThisNode)

/** Other frameworks, and hosts on the runtimes of tools/runtimes. */
export const others: Host[] = [
  ...byRecipe.map(onThisNode),
  ...nodes.map(({ version, command, missing }) => ({
    name: `node:http on Node ${version}`,
    missing,
    differs: onNode,
    spelling: ALONE,
    start: () => runNode(command, 'node'),
  })),
  {
    name: 'Deno.serve',
    missing: deno.missing,
    differs: onDeno,
    spelling: ALONE,
    start: () => runDeno(deno.command, 'deno'),
  },
  {
    name: 'Hono on Deno',
    missing: deno.missing,
    differs: onDeno,
    spelling: PASSED_ON,
    own: { notFound: '404 Not Found' },
    start: () => runDeno(deno.command, 'hono-deno'),
  },
  {
    name: 'Bun.serve',
    missing: bun.missing,
    differs: onBareBun,
    spelling: RESOLVED_BEFORE,
    start: () => runBun(bun.command, 'bun'),
  },
  {
    name: 'Hono on Bun',
    missing: bun.missing,
    differs: onBun,
    spelling: RESOLVED_BEFORE,
    own: { notFound: '404 Not Found' },
    start: () => runBun(bun.command, 'hono-bun'),
  },
  {
    name: 'workerd',
    missing: workerd.missing,
    differs: onWorkerd,
    spelling: RESOLVED_BEFORE,
    tornDown: 'workerd ends the whole request context with the client',
    start: () => runWorkerd(workerd.command),
  },
]
