-- `streams`: a table of streams. `messages:of:<stream>`: message ids of a stream by sequence; `row` of the table
-- `messages` holds one, under `stream\nmessage`. Shares: `history` of all messages, `spilled` of those whose payload is
-- in the spill store, `emptied` of streams whose messages have all left (`last` of it: sequence and user of each).
-- `spilled:loose`: references that no message holds, by the time from which they may be deleted.
--@include ../store/tables.lua
local t, m = 'streams', 'messages'

-- What a message is known by in its stream, which is its first user's: of another one by the user, too.
local function place_of(state, message_id, user)
  return state and state.user_id ~= user and message_id .. '\n' .. user or message_id
end
