-- The end of the library: its functions. While it is loaded it sees nothing of Lua's own, so the first call makes the rest.
local run
local function call(keys, args)
  run = run or make()
  return run(keys, args)
end
redis.register_function({{TURN}}, call)
redis.register_function{ function_name = {{FREE}}, callback = call, flags = { 'allow-oom' } }
