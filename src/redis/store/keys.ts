/** The names of everything this library keeps in a shared store, for writers and readers alike: no other file joins keys. */

import { shown } from '../../contract/checks.js'
import { encodePart } from '../../contract/ids.js'

/** Most shards of one deployment: a read of one id asks all of them in one round. */
export const SHARDS_MAX = 64

const DEPLOYMENT = /^[A-Za-z0-9_-]{1,64}$/

/** @throws RangeError for a deployment id that could name another deployment's keys. */
export function checkDeploymentId(deploymentId: string): string {
  // `test` would take a missing id for the deployment "undefined".
  if (typeof deploymentId !== 'string' || !DEPLOYMENT.test(deploymentId))
    throw new RangeError(`deploymentId must match ^[A-Za-z0-9_-]{1,64}$, not ${shown(deploymentId)}`)
  return deploymentId
}

const utf8 = new TextEncoder()

// CRC16-XMODEM, as Redis Cluster hashes its slots: 256 entries are cheaper than eight shifts per byte.
const CRC16 = Uint16Array.from({ length: 256 }, (_, byte) => {
  let crc = byte << 8
  for (let bit = 0; bit < 8; bit++) crc = crc & 0x8000 ? (crc << 1) ^ 0x1021 : crc << 1
  return crc & 0xffff
})

/** CRC16-XMODEM of the UTF-8 bytes of `text`. */
export function crc16(text: string): number {
  let crc = 0
  for (const byte of utf8.encode(text)) crc = ((crc << 8) ^ (CRC16[((crc >> 8) ^ byte) & 0xff] as number)) & 0xffff
  return crc
}

/** The shard that holds all records of `userId`, and the claim on a deployment-wide unique id. */
export function shardOf(id: string, shards: number): number {
  return shards === 1 ? 0 : crc16(id) % shards
}

/** What every key of a shard starts with; all of them hash to one slot. */
export function shardPrefix(deploymentId: string, shard: number): string {
  return `relayscope:{${deploymentId}:${shard}}:`
}

/** What a key says of `parts`. */
export function pathOf(parts: readonly string[]): string {
  let path = ''
  for (let i = 0; i < parts.length; i++) path += (i === 0 ? '' : ':') + encodePart(parts[i] as string)
  return path
}

/** The key of `parts` under the prefix of a shard. */
export const keyOf = (prefix: string, parts: readonly string[]): string => prefix + pathOf(parts)

/** The same joining inside a script: `K('row', id)` under `KEYS[1]`, which is the shard's prefix. */
export const KEY_LUA = `
-- To look at an id costs more than most commands: the same one comes again.
local encoded = {}
local function encode(part)
  local known = encoded[part]
  if known then return known end
  -- Most ids are plain, and looking costs a tenth of replacing.
  if not string.find(part, '[^%w_-]') then known = part
  else known = string.gsub(part, '[^%w_-]', function(c) return string.format('%%%02X', string.byte(c)) end) end
  encoded[part] = known
  return known
end
local function K(...)
  local parts = {...}
  for i = 1, #parts do parts[i] = encode(parts[i]) end
  return KEYS[1] .. table.concat(parts, ':')
end
-- Where several keys end in the same ids these are joined once: ended('delivery', 'box', ids(user, client)).
local function ids(first, second) return encode(first) .. ':' .. encode(second) end
local function ended(t, name, last) return KEYS[1] .. t .. ':' .. name .. ':' .. last end`
