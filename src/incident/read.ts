/** Reads an untrusted file: size limits, a check of each row, and errors that name the fault. */
import { faultsOf, textOfFaults } from '../internal/contract/bad-record.js'
import { isDeeperThan, type Json } from '../internal/contract/json.js'
import { JSON_DEPTH } from '../internal/contract/limits.js'
import { refuseJsonText } from '../internal/http/body.js'
import {
  INCIDENT_BYTES,
  INCIDENT_FORMAT,
  INCIDENT_VERSION,
  type Incident,
  IncidentHeader,
  PART_SCHEMAS,
} from './format.js'
import { PART_BY_ROUTE, rowIdOf } from './parts.js'

/** Why a file cannot be opened. */
export type IncidentRefusal =
  | 'too_large'
  | 'not_json'
  | 'too_deep'
  | 'hostile'
  | 'wrong_format'
  | 'wrong_version'
  | 'invalid'
  | 'duplicate_row'

/** A file that is not an incident, or cannot be trusted as one. The message names what is wrong and repeats no value. */
export class IncidentRefused extends Error {
  override readonly name = 'IncidentRefused'

  constructor(
    readonly code: IncidentRefusal,
    message: string,
    options?: ErrorOptions,
  ) {
    super(message, options)
  }
}

/** What a host may pass: the text or the bytes of a file, or what was parsed of it. */
export type IncidentFile = string | Uint8Array | object

// A row stands three levels deep in the file.
const DEPTH = JSON_DEPTH + 4
// Each object costs some hundred bytes of memory, against the three bytes that it takes in the file.
const CONTAINERS = 2_000_000

/** Parses `text` without building anything that a hostile file could make expensive. @throws IncidentRefused */
export function parseBounded(text: string, maxBytes: number = INCIDENT_BYTES): Json {
  if (text.length > maxBytes) throw new IncidentRefused('too_large', `the file has more than ${maxBytes} bytes`)
  const reason = refuseJsonText(text, { depth: DEPTH, containers: CONTAINERS })
  if (reason !== undefined)
    throw new IncidentRefused(/deep/.test(reason) ? 'too_deep' : 'hostile', `the file ${reason}`)
  try {
    return MAY_NAME_PROTO.test(text) ? JSON.parse(text, refusePrototypes) : JSON.parse(text)
  } catch (cause) {
    if (cause instanceof IncidentRefused) throw cause
    throw new IncidentRefused('not_json', 'the file is damaged: it is not valid JSON, or was cut short', { cause })
  }
}

// A name may be spelled with escapes.
const MAY_NAME_PROTO = /__proto__|\\u00(?:5f|70|72|6f|74)/i

function refusePrototypes(name: string, value: unknown): unknown {
  if (name === '__proto__') throw new IncidentRefused('hostile', 'the file has a member named "__proto__"')
  return value
}

function decodeText(file: string | Uint8Array): string {
  if (typeof file === 'string') return file
  if (file.byteLength > INCIDENT_BYTES)
    throw new IncidentRefused('too_large', `the file has more than ${INCIDENT_BYTES} bytes`)
  try {
    return new TextDecoder('utf-8', { fatal: true }).decode(file)
  } catch (cause) {
    throw new IncidentRefused('not_json', 'the file is damaged: it is not UTF-8', { cause })
  }
}

function parsed(file: IncidentFile): unknown {
  if (typeof file === 'string' || file instanceof Uint8Array) return parseBounded(decodeText(file))
  if (isDeeperThan(file, DEPTH)) throw new IncidentRefused('too_deep', `the incident nests deeper than ${DEPTH} levels`)
  return file
}

const READ = new WeakSet<object>()

/** `incident`, which was built from rows that were read already. */
export function trusted(incident: Incident): Incident {
  READ.add(incident)
  return incident
}

/**
 * Reads an incident. Members that the format does not name are dropped.
 *
 * @throws IncidentRefused for a file that is damaged, too large, too deep, of another format or version, or holds a row
 * that is not what the schema of its route says.
 */
export function readIncident(file: IncidentFile): Incident {
  if (typeof file === 'object' && READ.has(file)) return file as Incident
  const value = parsed(file)
  const { format, version } = Object(value) as Record<string, unknown>
  if (format !== INCIDENT_FORMAT)
    throw new IncidentRefused('wrong_format', `the file is not an incident: "format" is not "${INCIDENT_FORMAT}"`)
  if (version !== INCIDENT_VERSION)
    throw new IncidentRefused(
      'wrong_version',
      `the file has ${typeof version === 'number' ? `version ${version}` : 'no known version'} of the format; this relayscope reads version ${INCIDENT_VERSION}`,
    )
  const header = IncidentHeader.safeParse(value)
  if (!header.success)
    throw new IncidentRefused('invalid', `the file is invalid: ${textOfFaults(faultsOf(header.error))}`)
  const seen = new Set<string>()
  const parts = header.data.parts.flatMap((part) => {
    if (seen.has(part.route))
      throw new IncidentRefused('invalid', `the file is invalid: two parts of ${shownRoute(part.route)}`)
    seen.add(part.route)
    return readPart(part) ?? []
  })
  return trusted({ ...header.data, parts })
}

const shownRoute = (route: string) => (PART_BY_ROUTE.has(route) ? route : 'a route')

function readPart(given: { route: string }): Incident['parts'][number] | null {
  const [schema, part] = [PART_SCHEMAS.get(given.route), PART_BY_ROUTE.get(given.route)]
  // Of a newer version. The file itself says that it has more than this one can show.
  if (!schema || !part) return null
  const read = schema.safeParse(given)
  if (!read.success)
    throw new IncidentRefused('invalid', `the part ${given.route} is invalid: ${textOfFaults(faultsOf(read.error))}`)
  const ids = new Set<string>()
  if (part.id !== null)
    for (const row of read.data.rows ?? []) {
      const id = rowIdOf(part, row)
      if (ids.has(id))
        throw new IncidentRefused('duplicate_row', `the part ${given.route} has two rows with the same id`)
      ids.add(id)
    }
  return read.data
}
