-- Members and scores of a sorted set between two scores, at most `count`; the greatest score first where `rev` is 1.
local function range(key, from, to, count)
  if rev == '1' then return read('ZRANGE', key, from, to, 'BYSCORE', 'REV', 'LIMIT', 0, count, 'WITHSCORES') or {} end
  return read('ZRANGE', key, from, to, 'BYSCORE', 'LIMIT', 0, count, 'WITHSCORES') or {}
end
