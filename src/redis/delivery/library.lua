-- Inputs: `make`, which builds `turn`. Outputs: two functions of the store, of which one runs in a full store. Publishes nothing.
-- The last part of the library registers its functions. While a library loads, the Lua globals that the code needs are not
-- available, so the first call builds the rest.
local run
local function call(keys, args)
  run = run or make()
  return run(keys, args)
end
redis.register_function({{TURN}}, call)
redis.register_function{ function_name = {{FREE}}, callback = call, flags = { 'allow-oom' } }
