/** Values that a careful program would not send: ids, numbers, bodies, cursors. Serves the fuzzer's requests. */
import type { Random } from './fuzz-random.js'

/** Stands in what a request says and no problem may repeat. */
export const ECHO = 'ech0ed-v4lue'

/** Ids as they stand in a path, encoded or not. */
const IDS = [
  'alice',
  'alice',
  'notes',
  'laptop',
  'missing',
  ECHO,
  '%61lice',
  'a%2Fb',
  'a%252Fb',
  '..',
  '%2e%2e',
  '.',
  '%2E',
  '',
  '%',
  '%ZZ',
  '%ff',
  '%c0%af',
  '%ed%a0%80',
  '%00',
  '%0d%0aX-Injected:%201',
  '%E2%80%A8',
  '%E2%80%AE',
  '%F0%9F%98%80',
  '*',
  '?',
  ';jsessionid=1',
  '__proto__',
  'constructor',
  'hasOwnProperty',
  'users',
  '9007199254740993',
  '-1',
  '1e400',
]

export function someId(random: Random): string {
  if (random.chance(0.04)) return ECHO.repeat(1 + random.below(60))
  if (random.chance(0.02)) return '%41'.repeat(random.below(400))
  return random.pick(IDS)
}

const LIMITS = [
  '1',
  '2',
  '500',
  '1000',
  '501',
  '0',
  '-1',
  '1.5',
  '1e3',
  '0x10',
  '010',
  '%205',
  '',
  '9'.repeat(40),
  ECHO,
]

export const someLimit = (random: Random): string => random.pick(LIMITS)

/** `cursor`, or a corrupted copy of it. */
export function forge(random: Random, cursor: string): string {
  const at = random.below(cursor.length + 1)
  const letter = random.pick([...'AZaz09-_=.%+/~'])
  return random.pick([
    () => cursor,
    () => cursor.slice(0, at),
    () => cursor + letter.repeat(1 + random.below(3)),
    () => cursor.slice(0, at) + letter + cursor.slice(at + 1),
    () => cursor.split('').reverse().join(''),
    () => cursor.repeat(1 + random.below(20)),
    () => Buffer.from(`{"v":1,"token":"${ECHO}"}`).toString('base64url'),
    () => 'A'.repeat(random.below(2_000)),
  ])()
}

/** JSON text that our own code would never write. */
const SCRAPS: readonly ((random: Random) => string)[] = [
  () => 'null',
  () => '1e400',
  () => '-0',
  () => `${'9'.repeat(400)}`,
  () => '100000000000001',
  () => '9007199254740993',
  () => '0.1e-400',
  () => '"\\ud800"',
  () => '"\\udc00\\ud800"',
  () => '"\\u2028\\u2029"',
  () => '"\\u0000\\r\\n\\u202e"',
  () => '"\ud83d\ude00"',
  () => `"${ECHO}"`,
  () => '"__proto__"',
  () => '{"__proto__":{"admin":true}}',
  () => '{"\\u005f_proto__":{"toString":null}}',
  () => '{"constructor":{"prototype":{"polluted":1}}}',
  () => '{"__cooperative_site_id":"other"}',
  () => '{"\\u005f_cooperative_site_session_id":"other"}',
  () => '{"a":1,"a":2,"\\u0061":3}',
  () => '[{},{},[]]',
  () => '',
  () => '  ',
  () => '\ufeff{}',
  () => '{"a":}',
  () => "{'a':1}",
  () => 'NaN',
  () => '"',
  () => '[1,]',
  (random) => `${'['.repeat(random.below(100_000))}`,
  (random) => '['.repeat(40 + random.below(2_000)).replace(/.*/, (open) => open + ']'.repeat(open.length)),
  (random) => `[${'{},'.repeat(random.below(30_000))}{}]`,
  (random) => `{${Array.from({ length: random.below(3_000) }, (_, i) => `"k${i}":${i}`).join(',')}}`,
  (random) => `"${'x'.repeat(random.below(70_000))}"`,
  (random) => `"${'\u00e9'.repeat(random.below(140_000))}"`,
]

export const someJson = (random: Random): string => random.pick(SCRAPS)(random)

/** `value` as JSON text in which something is not as it should be. */
export function spoil(random: Random, value: Record<string, unknown>): string {
  const names = Object.keys(value)
  const name = random.pick(names)
  const members = names.map((given) => `${JSON.stringify(given)}:${JSON.stringify(value[given])}`)
  const spoilt = `${JSON.stringify(name)}:${someJson(random)}`
  return random.pick([
    () => `{${members.map((member, i) => (names[i] === name ? spoilt : member)).join(',')}}`,
    () => `{${[...members, spoilt].join(',')}}`,
    () => `{${members.filter((_, i) => names[i] !== name).join(',')}}`,
    () => `{${[...members, `"${ECHO}":${someJson(random)}`].join(',')}}`,
    () => `{${members.join(',')}`,
    () => `[${JSON.stringify(value)}]`,
    () => someJson(random),
  ])()
}

/** `text` as bytes, now and then ones that are no UTF-8. */
export function toBytes(random: Random, text: string): Buffer {
  const bytes = Buffer.from(text)
  if (bytes.length > 0 && random.chance(0.06))
    bytes[random.below(bytes.length)] = random.pick([0xff, 0xc0, 0xed, 0x80, 0])
  return bytes
}
