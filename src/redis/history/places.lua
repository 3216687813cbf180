-- `streams`: a table of streams. `messages:of:<stream>`: message ids of a stream by sequence. `messages:row:<id>`: a
-- message, with the id `stream\nmessage`. Shares: `history` of all messages, `spilled` of those with a payload in the
-- spill store, `emptied` of streams without messages (`emptied:last`: sequence and user of each). `spilled:loose`:
-- references without a message, by the time from which they may be deleted.

--@include ../store/tables.lua

local t, m = 'streams', 'messages'

-- Returns the name of a message within its stream. A stream belongs to its first user: other users' messages carry
-- their user.
local function place_of(state, message_id, user)
  return state and state.user_id ~= user and message_id .. '\n' .. user or message_id
end
