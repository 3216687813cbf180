/** The names of all keys in a shared store, for writers and readers. No other file builds keys. */

import { invalidOption } from '../../internal/contract/checks.js'
import { encodePart } from '../../internal/contract/ids.js'

/** Maximum number of shards of a deployment. Reading a record by id queries all shards at the same time. */
export const SHARDS_MAX = 64

const DEPLOYMENT = /^[A-Za-z0-9_-]{1,64}$/

/** Returns a valid deployment id. @throws RangeError for one that could address keys of another deployment. */
export function checkDeploymentId(deploymentId: string): string {
  // `test` would convert a missing id to the string "undefined".
  if (typeof deploymentId !== 'string' || !DEPLOYMENT.test(deploymentId))
    throw new RangeError(invalidOption('deploymentId', '1 to 64 of A-Z a-z 0-9 _ -', deploymentId))
  return deploymentId
}

const utf8 = new TextEncoder()

// CRC16-XMODEM, which Redis Cluster uses for its slots. A table of 256 entries is faster than eight shifts per byte.
const CRC16 = Uint16Array.from({ length: 256 }, (_, byte) => {
  let crc = byte << 8
  for (let bit = 0; bit < 8; bit++) crc = crc & 0x8000 ? (crc << 1) ^ 0x1021 : crc << 1
  return crc & 0xffff
})

/** Returns the CRC16-XMODEM of the UTF-8 bytes of `text`. */
export function crc16(text: string): number {
  let crc = 0
  for (const byte of utf8.encode(text)) crc = ((crc << 8) ^ (CRC16[((crc >> 8) ^ byte) & 0xff] as number)) & 0xffff
  return crc
}

/**
 * Returns the shard of an id: a user id (all records of a user are in one shard), or an id that is unique in the
 * deployment.
 */
export function shardOf(id: string, shards: number): number {
  return shards === 1 ? 0 : crc16(id) % shards
}

/**
 * Returns the prefix of all keys and channels of a shard. They hash to one slot. It names the database, unless that is
 * 0: the store separates the keys of databases, but not their channels.
 */
export function shardPrefix(deploymentId: string, shard: number, database = 0): string {
  return `relayscope:{${deploymentId}:${shard}${database === 0 ? '' : `@${database}`}}:`
}

/** Returns `parts` as they are written in a key. */
function pathOf(parts: readonly string[]): string {
  let path = ''
  for (let i = 0; i < parts.length; i++) path += (i === 0 ? '' : ':') + encodePart(parts[i] as string)
  return path
}

/** Returns the key of `parts` under the prefix of a shard; `K` in `keys.lua` joins the same way. */
export const keyOf = (prefix: string, parts: readonly string[]): string => prefix + pathOf(parts)
