/** Holds the numbers in the documents that are constants or defaults of the code. */
import { readdirSync, readFileSync } from 'node:fs'
import { maxHeaderSize } from 'node:http'
import { join } from 'node:path'
import { describe, expect, it } from 'vitest'
import { ROOT } from './imports.js'

const UNITS: Record<string, number> = {
  bytes: 1,
  KiB: 1_024,
  MiB: 1_048_576,
  GiB: 1_073_741_824,
  ms: 1,
  s: 1_000,
  min: 60_000,
  h: 3_600_000,
  d: 86_400_000,
}

const textOf = (path: string) => readFileSync(join(ROOT, path), 'utf8')

/** A constant or a default of the code, as its file declares it. */
function constantOf(place: string): number {
  const [path, name] = place.split(' ') as [string, string]
  if (path === 'node:http') return maxHeaderSize
  const [, sum] =
    new RegExp(`\\b(?:const ${name} = |${name}: count\\()([\\d_*+ ]+)(?:\\),)?$`, 'm').exec(textOf(`src/${path}.ts`)) ??
    []
  if (sum === undefined) throw new Error(`src/${path}.ts has no constant ${name}`)
  const toProduct = (text: string) =>
    text.split('*').reduce((product, factor) => product * Number(factor.replaceAll('_', '')), 1)
  return sum
    .split('+')
    .map(toProduct)
    .reduce((total, part) => total + part)
}

const shown = (value: number) => value.toLocaleString('en-US')

/** `{KiB}` in a phrase stands for the constant in this unit, `{}` for the number itself. */
function phraseOf(template: string, place: string): string {
  const value = constantOf(place)
  return template
    .replace('{}', shown(value))
    .replace(/\{(\w+)\}/, (_, unit: string) => `${shown(value / (UNITS[unit] ?? Number.NaN))} ${unit}`)
}

const LIMIT = (name: string) => `internal/contract/limits ${name}`

/** By document: what it says, and of which constant. */
const SAID: Record<string, [template: string, constant: string][]> = {
  'adapters.md': [['only the {KiB} limit of header bytes', 'node:http maxHeaderSize']],
  'control-server.md': [
    ['JSON, at most {KiB}', 'internal/http/body BODY_BYTES'],
    ['limited by bytes ({KiB})', 'node:http maxHeaderSize'],
    ['fewer than {} characters', 'control-server/server TOKEN_LENGTH'],
  ],
  'custom-inspectors.md': [
    ['your own token of at most {bytes}', LIMIT('TOKEN_BYTES')],
    ['at most {bytes} of JSON', LIMIT('METADATA_BYTES')],
    ['entries ({} by default)', LIMIT('EXAMINED_MAX')],
  ],
  'evidence.md': [['the last {} attempts', 'internal/contract/delivery ATTEMPTS_KEPT']],
  'findings.md': [
    ['the first {} records of each list', 'internal/views/findings/detector SUMMARY_PAGE'],
    ['is looked up for {} clients per request', 'internal/views/findings/detector CHANGES_MAX'],
    ['how many of its last {} commands', 'internal/views/findings/delivery EARLIER'],
  ],
  'incidents.md': [
    ['the bound on the file, {MiB}', 'incident/format INCIDENT_BYTES'],
    ['or after {MiB};', 'incident/memory-segments SEGMENT_CHARS'],
    ['the newest {} rows of each', 'incident/follow FOLLOWED_ROWS'],
  ],
  'mcp.md': [
    ['at most {KiB} and one message', 'internal/http/body BODY_BYTES'],
    ['`deadlineMs` ({s})', 'mcp/options DEADLINE_MS'],
    ['`answerBytes` ({KiB})', 'mcp/options ANSWER_BYTES'],
  ],
  'operating-delivery.md': [
    ['plus its payload (at most {KiB})', LIMIT('RECORD_BYTES')],
    ['silent for {s} gets no commands', 'redis/delivery/library LEASE_MS'],
  ],
  'problems.md': [
    ['the size at most {KiB}', 'internal/http/problem PROBLEM_BYTES'],
    ['Over {KiB}', 'internal/http/body BODY_BYTES'],
    ['Over {bytes}', 'internal/http/engine URL_LENGTH'],
    ['from 1 to {}', LIMIT('PAGE_MAX')],
  ],
  'redis-keys.md': [
    ['a crashed context: {h}', 'internal/contract/contexts LOST_MS'],
    ['at most {} of a user', 'internal/contract/contexts LOST_MAX'],
    ['A record has at most {KiB}', LIMIT('RECORD_BYTES')],
    ['counts beyond {} entries', LIMIT('EXAMINED_MAX')],
    ['of a dead node {s}', 'redis/subscriptions/facility LEASE_MS'],
    ['until it ends, then {h}', 'internal/contract/sessions FINAL_KEPT_MS'],
  ],
  'security.md': [
    ['at most {bytes} of URL', 'internal/http/engine URL_LENGTH'],
    ['and {KiB} of body', 'internal/http/body BODY_BYTES'],
    ['have 1 to {bytes} of UTF-8', LIMIT('ID_BYTES')],
    ['the body last, of at most {KiB}', 'internal/http/body BODY_BYTES'],
    ['be silent for {s}', 'browser/client HEARTBEAT_DEFAULT_MS'],
    ['URL | {bytes}', 'internal/http/engine URL_LENGTH'],
    ['body (relay router, control server, MCP) | {KiB}', 'internal/http/body BODY_BYTES'],
    ['page | {} items', LIMIT('PAGE_MAX')],
    ['entries read per source | {}', LIMIT('EXAMINED_MAX')],
    ['`deadlineMs` {s}', 'internal/async/deadline DEADLINE_MS'],
    ['id | {bytes}', LIMIT('ID_BYTES')],
    ['record in a store | {KiB}', LIMIT('RECORD_BYTES')],
    ['shares of one session | {}', 'internal/contract/sessions SHARES_MAX'],
    ['of connections | {} minutes', 'internal/contract/connections CHURN_MINUTES'],
    ['60 minutes, {} combinations', 'internal/contract/connections CHURN_COMBINATIONS'],
    ['60 minutes, {} counts of nodes', 'redis/delivery/churn ENTRIES'],
    ['without readers | {}', 'memory/cooperative/event-bus UNREAD_MAX'],
    ['each for {min}', 'memory/cooperative/event-bus UNREAD_MS'],
    ['{MiB} of answers', 'memory/cooperative/idempotency maxBytes'],
    ['(in Redis {MiB} per viewer)', 'redis/idempotency/facility bytesPerViewer'],
    ['per viewer) | {} per session', 'internal/contract/invocations IDEMPOTENCY_KEYS_MAX'],
    ['relay router | `closeTimeoutMs` {s}', 'internal/async/deadline CLOSE_TIMEOUT_MS'],
    ['correlator in Redis | {s}', 'internal/async/deadline CLOSE_TIMEOUT_MS'],
    ['disappear within {s}', 'redis/subscriptions/facility LEASE_MS'],
    ['the latest {} of a user', 'internal/contract/contexts LOST_MAX'],
  ],
  'shared-store.md': [
    ['refused if {MiB} of them wait', 'redis/store/store WAITING_MAX'],
    ['clock is read every {s}', 'redis/store/store TRUSTED_MS'],
    ['facilities resolves within {s}', 'internal/async/deadline CLOSE_TIMEOUT_MS'],
    ['more than {bytes} (1 MiB and 64 KiB) with `payload_too_large`', 'redis/rpc/inspector REPLY_BYTES'],
  ],
  'site-hosts.md': [
    ['keeps no message over {KiB}', LIMIT('RECORD_BYTES')],
    ['Parameters have at most {KiB}', LIMIT('RECORD_BYTES')],
    ['results {MiB} (`result_too_large`)', 'cooperative-site/actions/failure RESULT_BYTES'],
    ['JSON of at most {KiB}', 'internal/http/body BODY_BYTES'],
    ['(a reply: {MiB})', 'cooperative-site/actions/failure RESULT_BYTES'],
    ['{} levels', LIMIT('JSON_DEPTH')],
    ['and {} objects and arrays', 'internal/http/body CONTAINERS_MAX'],
    ['subscriber | {}; the oldest', 'internal/contract/event-bus QUEUE_SIZE'],
    ['names in a site | {} events', 'internal/contract/sites NAMES_MAX'],
  ],
  'site-viewers.md': [
    ['A viewer has {} keys', 'internal/contract/invocations IDEMPOTENCY_KEYS_MAX'],
    ['A relay keeps {MiB}', 'memory/cooperative/idempotency maxBytes'],
  ],
  'terminal.md': [['An answer of more than {MiB}', 'internal/relay-client/wire ANSWER_BYTES']],
}

const prose = (name: string) => textOf(`docs/${name}`).replaceAll(/\s+/g, ' ')

describe.each(Object.entries(SAID))('%s says of the code', (name, said) => {
  it.each(said)('%s as %s', (template, place) => {
    expect(prose(name)).toContain(phraseOf(template, place))
  })
})

/** Pages of measurements and of other programs. */
const OTHERS = /benchmarks|scaling|delivery-design/

const names = readdirSync(join(ROOT, 'docs')).filter((name) => name.endsWith('.md'))

/** Defaults of the options of that name: these pages are generated from the code. */
const defaults = new Map<string, Set<number>>()
for (const name of names.filter((each) => each.startsWith('options')))
  for (const [, option = '', value] of textOf(`docs/${name}`).matchAll(
    /^\| `(\w+)` \| [^\n]*?`number\b.*?` \| `(\d+)` \|/gm,
  ))
    defaults.set(option, (defaults.get(option) ?? new Set()).add(Number(value)))

/** `deadlineMs` (5 s), `maxSites` 10,000 */
const OF_OPTION = /`(\w+)`:? \(?(\d[\d,.]*)(?: (bytes|KiB|MiB|GiB|ms|s|min|h)\b)?/g

it.each(names)('%s gives each option the default that the code gives it', (name) => {
  const wrong = [...prose(name).matchAll(OF_OPTION)].filter(([, option = '', number = '', unit = 'bytes']) => {
    const held = defaults.get(option)
    return held && !held.has(Number(number.replaceAll(/,|\.$/g, '')) * (UNITS[unit] as number))
  })
  expect(wrong.map(([text]) => text)).toEqual([])
})

const written = names.filter((name) => !/^(?:options|route|facility-inputs)/.test(name) && !OTHERS.test(name))

it.each(written)('%s gives no size that is not held to the code', (name) => {
  const held = (SAID[name] ?? []).map(([template, place]) => phraseOf(template, place))
  const rest = held.reduce((text, phrase) => text.replaceAll(phrase, ''), prose(name).replaceAll(OF_OPTION, ''))
  expect([...rest.matchAll(/[^|.;]{0,40}\b\d[\d,.]* (?:bytes|KiB|MiB|GiB)\b/g)].map(([text]) => text)).toEqual([])
})
