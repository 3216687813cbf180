/** Records of an earlier build, for the scripts of the dispatcher: a hash, which is written anew as it is read. */
import { RECORD_FIELDS, recordText } from './format.js'

const of = (field: string) => `h['${field}']`
const lines = (first: string, ...others: string[]) =>
  `${of(first)} and table.concat({ ${[first, ...others].map((field) => `${of(field)} or ''`).join(', ')} }, '\\n') or ''`

const GROUPS = {
  attempted: lines('last_at', 'last_instance_id', 'last_node_id'),
  acknowledged: lines('acknowledged', 'acknowledged_at', 'acknowledged_by'),
  recovered: lines('recoveries', 'recovered_at', 'recovery_reason'),
  over: lines('terminal_at', 'terminal_reason'),
}

export const FORMER_RECORDS = `
-- The text of what stands there as a hash, or what the store said to whoever took it for one.
local function taken_over(key, otherwise)
  local found = redis.pcall('HGETALL', key)
  if found.err then return otherwise end
  local h = {}
  for i = 1, #found, 2 do h[found[i]] = found[i + 1] end
  if not ${of('ref')} then return otherwise end
  raise(D)
  local record = ${recordText({
    ...Object.fromEntries(RECORD_FIELDS.map((field) => [field, `${of(field)} or ''`])),
    ...GROUPS,
    attempts: `${of('attempts')} or '0'`,
  })}
  redis.call('SET', key, record)
  return record
end

-- What the store has for a record.
local function stored(key)
  local reply = redis.pcall('GET', key)
  return type(reply) == 'table' and taken_over(key, reply) or reply
end
`
