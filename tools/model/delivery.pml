/*
 * The delivery of one command over the shared store: two nodes, one client, and misfortunes that are counted.
 *
 * A step of the store is atomic, as a script is. What its sender learns of it is a step of its own, and may never come:
 * the reply is lost (the step was made), the command is lost (it was not), or it is made twice. A node may die between
 * any two steps, or be silent for so long that another one removes its waiter. README.md says which step is which line
 * of code. Variants that must fail:
 * - LOST_NOTICE: the protocol as it first was. Notices are taken out of the store as they are fetched, an admission tells
 *   its own node in the reply alone, and nothing is said again: a lost reply strands the command;
 * - NO_ORDER: attaches carry no order, so that a late one takes the mailbox from a living waiter;
 * - ORDER_LAST: the registry is asked before the order, so that a superseded instance may get the greater one;
 * - AGAIN_YIELDS: a waiter that says again that it waits gives way to whoever waits, whatever the orders, and one that
 *   reads that it was replaced believes it, however old the answer is;
 * - NO_FENCE: whoever speaks is believed; NO_END: an end does not look whether there is one.
 * PROMPT: what a pass reads is heeded at once, unless it is lost, which leaves fewer states.
 */
#ifndef FAULTS
#define FAULTS 1
#endif
#ifndef CRASHES
#define CRASHES 1
#endif
#define ATTEMPTS 2
/* The first attach, one to the other node, and one for each misfortune. */
#ifndef MOVES
#define MOVES 1
#endif
#define TOKENS (1 + MOVES + FAULTS + CRASHES)
#define NONE 2

mtype:phase = { absent, ready, attempted, backoff, acknowledged, ended };
mtype:fate = { arrives, twice, unanswered, unsent };

/* What the store keeps. A token names a waiter; 0 is none. */
mtype:phase phase = absent;
bool boxed;
byte attempts;
bool concluded;
byte ends;
byte waiter;
byte place = NONE;
byte left_order;
byte claim_of;
bit claim_no;
byte claim_at;
bool todo[2];
byte orders;
byte order_of[TOKENS + 1];

/* What the registry of connections says: the client's last connection speaks for it. */
byte instance;

/* What nodes keep. */
bool dead[2];
byte mine[2];
bool called[2];
bool attaching[TOKENS + 1];

/* The client, and what the model counts. */
byte tokens;
byte here = NONE;
byte failed;
byte moved;
byte faults;
byte crashes;
bool given;
/* The command is yet to be dispatched, at a node where its client waits for nothing else. */
bool carried;

#define alive(n) (!dead[n])
/* What was to be shown has been: nothing after it is looked at. */
#ifdef WORDS
#define over false
#else
#define over (given || phase == ended)
#endif
#define came(f) (f != unsent)
#define answered(f) (f == arrives || f == twice)

/* What becomes of a command that is sent to the store. */
inline send(f) {
  if
  :: f = arrives
  :: faults < FAULTS -> faults++; f = twice
  :: faults < FAULTS -> faults++; f = unanswered
  :: faults < FAULTS -> faults++; f = unsent
  fi
}

/* script-notices.ts: call(). */
inline call_waiter() {
  if
  :: waiter != 0 -> todo[place] = true
  :: else
  fi
}

/* script-moves.ts: finish(). */
inline finish() {
  boxed = false;
  phase = ended;
  ends++;
  assert(ends == 1)
}

/* script-moves.ts: recover(), ready(). */
inline recover() {
  if
  :: attempts >= ATTEMPTS -> finish()
  :: else -> phase = backoff
  fi
}

/* script-nodes.ts: DETACH. */
inline detach(token, order) {
  if
  :: order > left_order -> left_order = order
  :: else
  fi;
  if
  :: waiter == token -> todo[place] = false; waiter = 0; place = NONE
  :: else
  fi
}

/* script-nodes.ts: ATTACH. `is_late` is its answer. */
inline attach(n, token, again) {
  is_late = false;
  if
  :: waiter != token ->
#ifndef NO_ORDER
    is_late = order_of[token] <= left_order || (waiter != 0 && order_of[token] < order_of[waiter]);
#ifdef AGAIN_YIELDS
    is_late = is_late || (again && waiter != 0);
#endif
#else
    is_late = again && waiter != 0;
#endif
    if
    :: !is_late && waiter != 0 -> todo[place] = false
    :: else
    fi
  :: else
  fi;
  if
  :: !is_late ->
    waiter = token; place = n;
    if
    :: boxed -> todo[n] = true
    :: else
    fi
  :: else
  fi
}

/* calls.ts: dispatch(), at either node; whoever dispatched may never learn that it was admitted. */
proctype Dispatch(byte n) {
  mtype:fate f; bool told;
  atomic {
    send(f);
    /* scripts.ts: ADMIT. A second arrival finds the command known. */
    if
    :: came(f) && alive(n) ->
      phase = ready; boxed = true;
      told = (waiter != 0 && place == n);
      call_waiter()
    :: else
    fi
  };
#ifdef LOST_NOTICE
  /* The own waiter was told of in the reply alone. */
  atomic {
    if
    :: told -> todo[n] = false
    :: else
    fi
  };
#endif
  atomic {
    if
    :: told && answered(f) && alive(n) && mine[n] != 0 -> called[n] = true
    :: else
    fi;
    told = false; f = 0
  }
}

/* waiters.ts: attach(). */
proctype Attach(byte n, token) {
  mtype:fate f; bool is_late;
#ifdef ORDER_LAST
  if
  :: instance == token
  :: atomic { instance != token -> goto gone }
  fi;
#endif
  atomic {
    /* script-nodes.ts: ORDER. Then the registry is asked: who speaks for the client later has a greater one. */
    attaching[token] = true; orders++; order_of[token] = orders;
#ifndef ORDER_LAST
    if
    :: instance != token -> attaching[token] = false; goto gone
    :: else
    fi
#endif
  };
  atomic {
    send(f);
    if
    :: came(f) && alive(n) -> attach(n, token, false)
    :: else
    fi
  };
  atomic {
    attaching[token] = false;
    if
    :: alive(n) && answered(f) && !is_late && (mine[n] == 0 || order_of[mine[n]] < order_of[token]) ->
      mine[n] = token; called[n] = true; goto gone
    :: alive(n) && !answered(f) -> failed = token
    :: else -> goto gone
    fi
  };
  /* pass(): what may have come through is taken back. Until it is, others may attach. */
  atomic {
    if
    :: alive(n) -> detach(token, order_of[token])
    :: else
    fi
  };
gone:
  atomic { is_late = false; f = 0 }
}

/* The client connects, again where its node has died or said no, and once to the other node out of a whim. */
active proctype Client() {
  do
  :: atomic {
      !over && tokens < TOKENS && (here == NONE || dead[here] || failed == tokens || (moved < MOVES && tokens > 0)) ->
      if
      :: here != NONE && alive(here) && failed != tokens -> moved++; here = 1 - here
      :: else -> here = 0
      fi;
      if
      :: dead[here] -> here = 1 - here
      :: else
      fi;
      tokens++; instance = tokens;
      run Attach(here, tokens)
    }
  :: atomic { over -> break }
  od
}

/* script-claims.ts: claim_next(). */
inline claim_next() {
  if
  :: came(f) && waiter != token -> is_missing = waiter == 0; is_replaced = waiter != 0
  :: came(f) && waiter == token && unsure && claim_of == token && claim_no == number ->
    got = phase == attempted && attempts == claim_at && !concluded
  :: came(f) && waiter == token && !(unsure && claim_of == token && claim_no == number) ->
    claim_of = token; claim_no = number; claim_at = 0;
    if
    :: boxed && phase == ready ->
      boxed = false; phase = attempted; attempts++; concluded = false; claim_at = attempts; got = true
    :: else
    fi;
    todo[n] = false
  :: else
  fi
}

/* mailboxes.ts: drain(), step(), claim(). Claims are numbered; one bit tells a claim from the one before. */
proctype Drain(byte n) {
  mtype:fate f; bool got; bool is_missing; bool is_replaced; bool is_late; byte token; bit number; byte hand; bool unsure;
  do
  :: atomic { !over && called[n] && mine[n] != 0 && alive(n) && instance != mine[n] ->
      /* isCurrent(): a fenced waiter leaves. */
      called[n] = false; token = mine[n]; mine[n] = 0;
      detach(token, order_of[token]);
      token = 0
    }
  :: atomic { !over && mine[n] != 0 && alive(n) && ((called[n] && instance == mine[n]) || (carried && !called[n] && !unsure)) ->
      token = mine[n];
      if
      :: !unsure -> number = 1 - number
      :: else
      fi;
      send(f);
      /* claimAtOnce(): ADMIT and the claim behind it are one step, and have one reply. */
      if
      :: !called[n] && came(f) -> phase = ready; boxed = true; call_waiter()
      :: else
      fi;
      if
      :: !called[n] -> carried = false
      :: else -> called[n] = false
      fi;
      claim_next();
      unsure = !answered(f);
      hand = attempts
    };
    atomic {
      if
      :: dead[n] -> break
      /* A step that failed is made again by the next pass. */
      :: alive(n) && !answered(f) -> called[n] = mine[n] == token
#ifdef AGAIN_YIELDS
      :: alive(n) && answered(f) && is_replaced && mine[n] == token -> mine[n] = 0
      :: alive(n) && answered(f) && is_missing && mine[n] == token ->
#else
      /* again(): the answer may be old by now; who is to wait is decided by the orders. */
      :: alive(n) && answered(f) && (is_missing || is_replaced) && mine[n] == token ->
#endif
        attach(n, token, true);
        if
        :: is_late -> mine[n] = 0
        :: else -> called[n] = true
        fi
      :: alive(n) && answered(f) && got ->
        /* attempts.ts: handOver(). */
        given = true;
        send(f);
        /* scripts.ts: CONCLUDE. */
        if
        :: came(f) && phase == attempted && attempts == hand && !concluded -> concluded = true
        :: else
        fi
      :: else
      fi;
      f = 0; got = false; is_missing = false; is_replaced = false; is_late = false; token = 0; hand = 0
    }
  :: atomic { dead[n] || over -> break }
  od
}

/* loop.ts: pass(), again and again. take() hears the same in between, which is only sooner. */
proctype Loop(byte n) {
  mtype:fate f; bool calls; bool is_missing; bool is_replaced; bool is_late; byte named; byte held;
  do
  :: atomic { alive(n) && !over ->
      named = mine[n]; calls = false; is_missing = false; is_replaced = false; held = 0;
      send(f);
      /* script-nodes.ts: RECONCILE. */
      if
      :: came(f) ->
        /* confirm(), and the waiters that the store names. */
        if
        :: named != 0 && !(waiter == named && place == n) -> is_missing = waiter == 0; is_replaced = waiter != 0
        :: else
        fi;
        if
        :: place == n && waiter != named -> held = waiter
        :: else
        fi;
        /* reap(): a dead node's waiters, and those of one that was silent for a minute. */
        if
        :: place == 1 - n && dead[1 - n] -> waiter = 0; todo[1 - n] = false; place = NONE
        :: place == 1 - n && alive(1 - n) && faults < FAULTS ->
          faults++; waiter = 0; todo[1 - n] = false; place = NONE
        :: else
        fi;
        /* `wakes`: an attempt without patience, or a pause that is over. */
        if
        :: phase == attempted -> recover()
        :: phase == backoff -> phase = ready; boxed = true; call_waiter()
        :: else
        fi;
        calls = todo[n];
#ifdef LOST_NOTICE
        todo[n] = false;
        calls = calls && f != twice;
        is_missing = false; is_replaced = false; held = 0
#endif
      :: else
      fi;
#ifndef PROMPT
      skip
    };
    atomic {
#endif
      if
      :: dead[n] -> break
      :: alive(n) && answered(f) ->
#ifdef AGAIN_YIELDS
        if
        :: is_replaced && mine[n] == named -> mine[n] = 0
        :: else
        fi;
        is_replaced = false;
#endif
        if
        :: calls && mine[n] != 0 -> called[n] = true
        :: else
        fi;
        if
        /* restore(), again(): waits again, unless one with a greater order does. */
        :: (is_missing || is_replaced) && mine[n] == named ->
          send(f);
          if
          :: came(f) -> attach(n, named, true)
          :: else
          fi;
          if
          :: answered(f) && is_late -> mine[n] = 0
          :: answered(f) && !is_late -> called[n] = true
          :: else
          fi
        /* held(): the store thinks that somebody is here who is not. */
        :: held != 0 && mine[n] != held && !attaching[held] ->
          send(f);
          if
          :: came(f) -> detach(held, 0)
          :: else
          fi
        :: else
        fi
      :: alive(n) && !answered(f)
      fi;
      f = 0; named = 0; calls = false; is_missing = false; is_replaced = false; is_late = false; held = 0
    }
  :: atomic { dead[n] || over -> break }
  od
}

/* calls.ts: acknowledge() and settle(), as an instance says them that may have been superseded. */
proctype Word(byte who) {
  byte asked;
  (instance >= who && given) -> asked = instance;
  /* script-ends.ts: ACKNOWLEDGE, fenced by what the registry said after the call was made. */
  atomic {
    if
#ifndef NO_FENCE
    :: asked == who && (phase == ready || phase == attempted || phase == backoff) ->
#else
    :: phase == ready || phase == attempted || phase == backoff ->
#endif
      assert(asked == who);
      boxed = false; phase = acknowledged
    :: else
    fi
  };
  /* script-ends.ts: END. */
  atomic {
    if
#ifndef NO_END
    :: phase != ended && phase != absent && asked == who -> finish()
#else
    :: phase != absent && asked == who -> finish()
#endif
    :: else
    fi
  }
}

/* script-moves.ts: look(), after the deadline. */
proctype Deadline() {
  atomic {
    if
    :: phase != absent && phase != ended -> finish()
    :: else
    fi
  }
}

proctype Crash() {
  if
  :: atomic { crashes < CRASHES -> crashes++; dead[0] = true; mine[0] = 0; called[0] = false }
  :: atomic { crashes < CRASHES -> crashes++; dead[1] = true; mine[1] = 0; called[1] = false }
  :: skip
  fi
}

init {
  atomic {
    run Drain(0); run Drain(1); run Loop(0); run Loop(1); run Crash();
#ifdef WORDS
    run Word(1); run Word(2); run Deadline();
#endif
    if
    :: run Dispatch(0)
    :: run Dispatch(1)
    :: carried = true
    fi
  }
}

#ifndef WORDS
/* An admitted command does not wait for ever: the client gets it, or it ends. */
ltl not_stranded { [] (phase == ready -> <> (given || phase == ended)) }
#endif
