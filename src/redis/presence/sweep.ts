/** What the loop of a node takes out of the tables of a shard: rows that live by being reported and were not. */
import { defineBare } from '../store/script.js'

/** ARGV: from 2 on the tables. Answers whether there is more. */
export const SWEEP_TABLES = defineBare(
  `
local more = 0
for i = 2, #ARGV do
  local t = ARGV[i]
  sweep(t)
  if redis.call('ZCOUNT', K(t, 'leaves'), '-inf', now) > 0 then more = 1 end
end
return more`,
  { freesMemory: true },
)
