/** What the loop of a node takes out of the tables of a shard: rows that live by being reported and were not. */
import { parseFlag } from '../store/reply.js'
import { defineScript } from '../store/script.js'

/** Answers whether there is more. */
export const SWEEP_TABLES = defineScript(
  'presence.sweep',
  { args: [], rest: 'tables', answer: parseFlag, freesMemory: true },
  `
local more = 0
for _, t in ipairs(tables) do
  sweep(t)
  if redis.call('ZCOUNT', K(t, 'leaves'), '-inf', now) > 0 then more = 1 end
end
return more`,
)
