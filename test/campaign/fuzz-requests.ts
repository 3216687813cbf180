/** What the fuzzer sends: requests that are nearly right, and their bytes on the wire. */
import { createRandom, type Random } from './fuzz-random.js'
import { ECHO, forge, someId, someJson, someLimit, spoil, toBytes } from './fuzz-values.js'

export type Surface = 'diagnostics' | 'relay' | 'control'

/** What is known of the servers: where they are, what opens them, and what a request can name. */
export interface Targets {
  ports: Record<Surface, number>
  /** `GET` targets of the diagnostics router that it answers, prefix and all. */
  diagnostics: readonly string[]
  prefix: string
  cursors: readonly string[]
  key: string
  token: string
  session_id: string
  /** Dora's, of the site that no attack names. */
  politeSessionId: string
}

export interface Asked {
  method: string
  target: string
  /** It carries what the surface asks for, once and rightly. */
  authorized: boolean
}

/** One connection: what is sent on it, and what may come back. */
export interface Attack {
  index: number
  surface: Surface
  /** Written one after the other. */
  chunks: Buffer[]
  /** In the order in which they stand on the wire. */
  asked: Asked[]
  /** Lengths that are no lengths: what follows may be read as requests of its own. */
  lies: boolean
  /** `hang-up`: gone as soon as it is written; `half`: no more is sent, and the answer is read. */
  ending: 'read' | 'half' | 'hang-up'
}

type Lines = [name: string, value: string][]

interface Draft {
  method: string
  target: string
  lines: Lines
  body: string | undefined
}

const METHODS = ['GET', 'GET', 'HEAD', 'POST', 'PUT', 'DELETE', 'PATCH', 'OPTIONS', 'TRACE', 'PROPFIND', 'QUERY']
const SITE_METHODS = ['GET', 'GET', 'HEAD', 'DELETE', 'DELETE', 'PATCH', 'OPTIONS', 'TRACE']
const NAMES = ['limit', 'cursor', 'user_id', 'client_id', 'status', 'stream', 'focused', 'window_id', ECHO, '__proto__']

function spellAgain(random: Random, target: string): string {
  const at = random.below(target.length)
  return random.pick([
    () => `/${target}`,
    () => `${target}/`,
    () => `/x/..${target}`,
    () => `/%2e${target}`,
    () => `${target}/%2E%2e`,
    () => target.replace(/[a-z]/, (letter) => `%${letter.charCodeAt(0).toString(16)}`),
    () => target.toUpperCase(),
    () => target.replace('/', '/\\'),
    () => `http://${ECHO}${target}`,
    () => `${target}#${ECHO}`,
    () => `${target}?${ECHO}`,
    () => `${target};${ECHO}=1`,
    () => target.slice(0, at) + random.pick(['%00', '%', '\u00e9', '"', '|', '%2F', '\x01', '//']) + target.slice(at),
    () => target + '/a'.repeat(random.below(6_000)),
    () => `${target}?${'q'.repeat(random.below(12_000))}`,
    () => '*',
    () => ECHO,
  ])()
}

function askDiagnostics(random: Random, { diagnostics, cursors, prefix }: Targets): Draft {
  let target = random.pick(diagnostics)
  if (random.chance(0.4)) target = target.replace(/(alice|conn-\d|laptop)/, () => someId(random))
  for (let n = random.chance(0.5) ? 0 : 1 + random.below(2); n > 0; n--) {
    const name = random.pick(NAMES)
    const value =
      name === 'limit' ? someLimit(random) : name === 'cursor' ? forge(random, random.pick(cursors)) : someId(random)
    target += `${target.includes('?') ? '&' : '?'}${name}=${value}`
  }
  if (random.chance(0.02)) target = `${prefix}/${someId(random)}/${someId(random)}`
  const body = random.chance(0.03) ? someJson(random) : undefined
  return { method: random.chance(0.85) ? 'GET' : random.pick(METHODS), target, lines: [], body }
}

const message = (random: Random) => ({
  message_id: `m-${random.below(500)}`,
  kind: random.pick(['event', 'event', 'result', 'control']),
  stream: random.pick([
    'sites/notes/events',
    'sites/notes/events',
    'clients/laptop/commands',
    'users/bob/x',
    'log',
    '',
  ]),
  client_id: random.pick(['laptop', 'laptop', 'phone']),
  instance_id: random.pick(['laptop-1', 'laptop-1', 'laptop-0']),
  payload: { name: 'note_changed', data: random.below(9) },
})

const site = () => ({ mode: 'cooperative', title: 't', event_names: ['note_changed'], action_names: ['archive_note'] })

const invocation = (random: Random) => ({ parameters: { id: random.below(9) }, timeout_ms: random.pick([1, 5, 20]) })

function askWithBody(random: Random, method: string, target: string, value: Record<string, unknown>): Draft {
  const type = random.pick([
    ...Array<string>(12).fill('application/json'),
    'text/plain',
    'application/json; charset=x',
    '',
  ])
  return {
    method: random.chance(0.95) ? method : random.pick(METHODS),
    target,
    lines: type === '' ? [] : [['Content-Type', type]],
    body: random.chance(0.4) ? JSON.stringify(value) : spoil(random, value),
  }
}

function askRelay(random: Random, { session_id }: Targets): Draft {
  const session = random.chance(0.8) ? session_id : someId(random)
  const siteId = random.chance(0.5) ? `site-${random.below(40)}` : someId(random)
  return random.pick([
    () => askWithBody(random, 'POST', '/relay/messages', message(random)),
    () => askWithBody(random, 'PUT', `/relay/sites/${siteId}`, site()),
    () => ({ method: random.pick(SITE_METHODS), target: `/relay/sites/${siteId}`, lines: [], body: undefined }),
    () => ({ method: 'GET', target: `/relay/sessions/${session}/events`, lines: [], body: undefined }),
    () => {
      const name = random.pick(['archive_note', 'archive_note', 'explode', 'sleep', 'nothing', someId(random)])
      return askWithBody(random, 'POST', `/relay/sessions/${session}/actions/${name}`, invocation(random))
    },
  ])()
}

function askControl(random: Random): Draft {
  const siteId = random.chance(0.5) ? `local-${random.below(40)}` : someId(random)
  const event = { name: 'note_changed', data: random.below(9), message_id: `c-${random.below(500)}` }
  return random.pick([
    () => askWithBody(random, 'PUT', `/sites/${siteId}`, site()),
    () => ({ method: random.pick(SITE_METHODS), target: `/sites/${siteId}`, lines: [], body: undefined }),
    () => askWithBody(random, 'POST', `/sites/${random.chance(0.5) ? 'notes' : siteId}/events`, event),
  ])()
}

/** Header lines that have no business there. */
const STRANGE: readonly ((random: Random) => Lines)[] = [
  () => [['X-Forwarded-For', '127.0.0.1']],
  () => [['Forwarded', `for=127.0.0.1;host=${ECHO}`]],
  () => [['Origin', `http://${ECHO}.test`]],
  () => [['Sec-Fetch-Site', 'cross-site']],
  () => [['Host', `${ECHO}.test`]],
  () => [['Content-Encoding', 'gzip']],
  () => [['Expect', '100-continue']],
  () => [['Expect', ECHO]],
  () => [['If-None-Match', '*']],
  () => [['X-HTTP-Method-Override', 'DELETE']],
  () => [['Cookie', `session=${ECHO}`]],
  () => [['Last-Event-ID', `${ECHO}:9007199254740993`]],
  () => [['Last-Event-ID', '\u00ff:1']],
  (random) => [['Idempotency-Key', `key-${random.below(60)}`]],
  () => [['Idempotency-Key', ECHO.repeat(40)]],
  () => [['X-Expected-Deployment-Id', ECHO]],
  () => [['Accept', 'text/html']],
  () => [['Upgrade', 'websocket']],
  () => [['Range', 'bytes=0-1']],
  (random) => [[`X-${ECHO}`, 'v'.repeat(random.below(20_000))]],
  (random) => Array.from({ length: random.below(1_500) }, (): [string, string] => ['a', '']),
  () => [['X-Folded', `a\r\n ${ECHO}`]],
  () => [['X Space', ECHO]],
  () => [['X-Control', `a\x00${ECHO}`]],
]

function authorize(random: Random, surface: Surface, { key, token }: Targets): { lines: Lines; authorized: boolean } {
  const right: [string, string] =
    surface === 'diagnostics'
      ? ['X-Admin-Key', key]
      : ['Authorization', `Bearer ${surface === 'control' ? token : random.pick(['alice', 'alice', 'bob', 'carol'])}`]
  if (random.chance(0.9)) return { lines: [right], authorized: true }
  const [name, value] = right
  const lines = random.pick<Lines>([
    [],
    [right, right],
    [[name, `${value}${ECHO}`]],
    [[`X-${name}`, value]],
    [[name, '']],
  ])
  // A relay user id may be any text, and two equal header lines are joined into one unknown user id.
  return { lines, authorized: surface === 'relay' && lines.length > 0 }
}

/**
 * Maximum bytes of an unread request body. When a longer one is still in flight after the last response of a
 * connection, Node resets the connection and drops the unsent rest of that response. A bare node:http server does the
 * same.
 */
const UNREAD_MAX = 16_384

/** The lines that say how long the body is, and the body as it is sent. */
function frame(random: Random, draft: Draft, mayLie: boolean): { lines: Lines; bytes: Buffer; lies: boolean } {
  const bytes = toBytes(random, draft.body ?? '')
  if (draft.body === undefined || (draft.method === 'GET' && bytes.length > UNREAD_MAX))
    return { lines: [], bytes: Buffer.alloc(0), lies: false }
  const honest = { lines: [['Content-Length', String(bytes.length)]] as Lines, bytes, lies: false }
  if (random.chance(0.7)) return honest
  if (!mayLie || random.chance(0.7)) {
    const half = bytes.length >> 1
    const pieces = [bytes.subarray(0, half), bytes.subarray(half)].filter((piece) => piece.length > 0)
    const chunks = pieces.flatMap((piece) => [
      Buffer.from(`${piece.length.toString(16)}\r\n`),
      piece,
      Buffer.from('\r\n'),
    ])
    return {
      lines: [['Transfer-Encoding', 'chunked']],
      bytes: Buffer.concat([...chunks, Buffer.from('0\r\n\r\n')]),
      lies: false,
    }
  }
  const lines = random.pick<Lines>([
    [['Content-Length', String(bytes.length + 1 + random.below(100))]],
    [['Content-Length', String(random.below(bytes.length + 1))]],
    [['Content-Length', '-1']],
    [['Content-Length', '1e3']],
    [['Content-Length', '99999999999999999999']],
    [
      ['Content-Length', '1'],
      ['Content-Length', '2'],
    ],
    [
      ['Content-Length', '4'],
      ['Transfer-Encoding', 'chunked'],
    ],
    [['Transfer-Encoding', 'gzip, chunked']],
    [['Transfer-Encoding', 'chunked, identity']],
    [],
  ])
  return { lines, bytes, lies: true }
}

function draw(random: Random, surface: Surface, targets: Targets): Draft {
  const draft =
    surface === 'diagnostics'
      ? askDiagnostics(random, targets)
      : surface === 'relay'
        ? askRelay(random, targets)
        : askControl(random)
  if (random.chance(0.08)) draft.target = spellAgain(random, draft.target)
  if (random.chance(0.25)) draft.lines.push(...random.pick(STRANGE)(random))
  return draft
}

/**
 * Whether Node ends the connection before our code runs: a long response to an earlier request is cut off if more was
 * pipelined after it.
 */
function endsConnection(lines: Lines): boolean {
  const length = lines.reduce((sum, [name, value]) => sum + name.length + value.length + 4, 0)
  const isMalformed = lines.some(([name]) => /^X( Space|-Control|-Folded)$/.test(name))
  return isMalformed || !lines.some(([name]) => name === 'Host') || length > 16_000
}

/** Connection `index` of the run `seed`. */
export function createAttack(seed: number, index: number, targets: Targets): Attack {
  const random = createRandom(seed, index)
  const surface = random.pick<Surface>(['diagnostics', 'diagnostics', 'relay', 'relay', 'control'])
  const asked: Asked[] = []
  const chunks: Buffer[] = []
  let lies = false
  const requests = random.chance(0.1) ? 2 + random.below(30) : 1
  const mayLie = random.chance(0.5)
  for (let n = 1; n <= requests; n++) {
    const draft = draw(random, surface, targets)
    // With a false length it would be unclear which response is the one without a body.
    if (mayLie && requests > 1 && draft.method === 'HEAD') draft.method = 'GET'
    const { lines, authorized } = authorize(random, surface, targets)
    const framed = frame(random, draft, mayLie)
    lies ||= framed.lies
    // The wire holds bytes: text outside Latin-1 is sent as UTF-8.
    const target = Buffer.from(draft.target).toString('latin1')
    asked.push({ method: draft.method, target, authorized })
    const all: Lines = [...lines, ...draft.lines, ...framed.lines]
    if (!random.chance(0.02)) all.unshift(['Host', `127.0.0.1:${targets.ports[surface]}`])
    const isLast = n === requests || endsConnection(all)
    if (isLast) all.push(['Connection', 'close'])
    const head = [`${draft.method} ${target} HTTP/1.1`, ...all.map(([name, value]) => `${name}: ${value}`), '', '']
    chunks.push(Buffer.concat([Buffer.from(head.join('\r\n'), 'latin1'), framed.bytes]))
    if (isLast) break
  }
  // An event stream stays open until its reader disconnects.
  const ending = random.chance(0.08) ? 'hang-up' : lies ? 'half' : 'read'
  return { index, surface, chunks, asked, lies, ending }
}
