/** The names of everything this library keeps in a shared store, for writers and readers alike: no other file joins keys. */

import { invalidOption } from '../../contract/checks.js'
import { encodePart } from '../../contract/ids.js'

/** Most shards of one deployment: a read of one id asks all of them in one round. */
export const SHARDS_MAX = 64

const DEPLOYMENT = /^[A-Za-z0-9_-]{1,64}$/

/** @throws RangeError for a deployment id that could name another deployment's keys. */
export function checkDeploymentId(deploymentId: string): string {
  // `test` would take a missing id for the deployment "undefined".
  if (typeof deploymentId !== 'string' || !DEPLOYMENT.test(deploymentId))
    throw new RangeError(invalidOption('deploymentId', '1 to 64 of A-Z a-z 0-9 _ -', deploymentId))
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

/** The key of `parts` under the prefix of a shard; `K` of `keys.lua` joins the same way. */
export const keyOf = (prefix: string, parts: readonly string[]): string => prefix + pathOf(parts)
