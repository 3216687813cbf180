/*
 * The delivery of one command over the shared store: two nodes, one client that may move between them, and a limited number
 * of faults. docs/delivery-design.md describes the protocol, README.md maps this model to the code.
 *
 * A run of steps at the store is atomic. Its reply is a separate step and may be lost; the run itself may be lost, or arrive
 * twice. The attempts of a node are in its memory only, so a node must be able to ask again after each lost reply, without
 * delivering one attempt twice. Variants that must fail:
 * - NO_SYNC: a node does not ask which attempts it was given after a lost reply;
 * - NO_MEMORY: a node forgets which attempts it has begun, so that the reply to a sync starts one again;
 * - NUMBERED: messages are numbered by a counter of the store, which repeats numbers after a failover that loses writes;
 * - NO_RESTART: a node that was declared dead continues under its old incarnation;
 * - NO_ORDER: a late attach takes the mailbox from a newer waiter;
 * - ONE_LOOK: one look at an expired lease declares a node dead, so that a clock step ends attempts of live nodes;
 * - NO_END: a step does not check whether the command has ended;
 * - NO_FENCE: acknowledgements and settlements of a former instance count.
 */
#ifndef FAULTS
#define FAULTS 1
#endif
#ifndef CRASHES
#define CRASHES 0
#endif
#ifndef MOVES
#define MOVES 1
#endif
#define ATTEMPTS 4
#define TOKENS (1 + MOVES + FAULTS + CRASHES)
#define NONE 2

mtype:phase = { absent, boxed, given, pause, ended };
mtype:fate = { arrives, twice, unanswered, unsent };

/* The store. `gift` is the number of the last attempt. An incarnation is a node and its era. */
mtype:phase phase = absent;
byte gift;
byte by = NONE;
byte by_era;
byte waiter;
byte place = NONE;
byte place_era;
byte ends;
byte orders;
byte order_of[TOKENS + 1];
/* For the current incarnation of each node: whether it was declared dead, the id of the last message to it, and the attempt in
 * that message. */
bool declared[2];
byte told[2];
byte letter[2];
byte ids = 1;

/* The registry of connections: the current instance of the client. */
byte instance;

/* The nodes. `held` is the running attempt, `begun` the last one that was delivered. */
bool dead[2];
byte era[2];
byte mine[2];
byte held[2];
byte begun[2];
byte heard[2];
bool doubt[2];
/* Attaches under way. Attempts that arrive for their mailbox wait for them. */
byte attaching[2];

byte tokens;
byte here = NONE;
byte failed;
byte moved;
byte faults;
byte crashes;
bool delivered;
bool taken[ATTEMPTS + 1];
byte silences;

#define alive(n) (!dead[n])
#ifdef WORDS
#define over false
#else
#define over (delivered || phase == ended)
#endif
#define came(f) (f != unsent)
#define answered(f) (f == arrives || f == twice)

inline send(f) {
  if
  :: f = arrives
  :: faults < FAULTS -> faults++; f = twice
  :: faults < FAULTS -> faults++; f = unanswered
  :: faults < FAULTS -> faults++; f = unsent
  fi
}

inline finish() {
  phase = ended; by = NONE;
  ends++;
  assert(ends == 1)
}

/* mailbox.lua: give(). Sets `own` if the reply to node `n` has the attempt; any other node gets a message. */
inline give(n) {
  if
  :: waiter != 0 && place != NONE && !declared[place] && place_era == era[place] ->
    if
    :: gift >= ATTEMPTS -> finish()
    :: else ->
      phase = given; gift++; by = place; by_era = place_era;
      if
      :: place == n -> own = gift
      :: else ->
#ifdef NUMBERED
        told[place]++;
#else
        ids++; told[place] = ids;
#endif
        letter[place] = gift
      fi
    fi
  :: else -> phase = boxed; by = NONE
  fi
}

/* attempts.ts: take(). An attempt begins once, even if several replies or messages have it. */
inline take(n, g) {
  if
#ifdef NO_MEMORY
  :: g != 0 && held[n] != g ->
#else
  :: g != 0 && g > begun[n] ->
#endif
    assert(!taken[g]);
    taken[g] = true; begun[n] = g; held[n] = g; delivered = true
  :: else
  fi
}

inline attach_step(n, token) {
  is_late = false;
  if
#ifndef NO_ORDER
  :: waiter != token && waiter != 0 && order_of[token] < order_of[waiter] -> is_late = true
#endif
  :: else ->
    waiter = token; place = n; place_era = era[n];
    if
    :: phase == boxed -> give(n)
    :: else
    fi
  fi
}

/* After a lost reply, the node asks which attempts its mailbox has. */
inline unsure(n) {
#ifndef NO_SYNC
  doubt[n] = true
#else
  skip
#endif
}

proctype Dispatch(byte n) {
  mtype:fate f; byte own;
  atomic {
    send(f);
    if
    :: came(f) && alive(n) && phase == absent -> give(n)
    :: else
    fi
  };
  atomic {
    if
    /* A run that arrives twice finds a known command the second time, so that the reply has no attempt. */
    :: alive(n) && f == arrives && own != 0 && mine[n] == waiter -> take(n, own)
    :: alive(n) && f == arrives && own != 0 && mine[n] != waiter -> unsure(n)
    :: alive(n) && f != arrives -> unsure(n)
    :: else
    fi;
    own = 0; f = 0
  }
}

proctype Attach(byte n, token) {
  mtype:fate f; bool is_late; byte own;
  atomic {
    orders++; order_of[token] = orders;
    if
    :: instance != token -> goto gone
    :: else -> attaching[n]++
    fi
  };
  atomic {
    send(f);
    if
    :: came(f) && alive(n) -> attach_step(n, token)
    :: else
    fi
  };
  atomic {
    if
    :: dead[n]
    :: alive(n) && f == arrives && !is_late && order_of[mine[n]] < order_of[token] -> mine[n] = token; take(n, own)
    :: alive(n) && f == twice && !is_late && order_of[mine[n]] < order_of[token] -> mine[n] = token; unsure(n)
    :: alive(n) && !answered(f) -> failed = token
    /* Replaced already: the node asks which attempts the attach was given. */
    :: else -> unsure(n)
    fi;
    attaching[n]--
  };
  /* pass(): detaches a waiter whose attach may have run, and returns its attempts to the queue. */
  atomic {
    if
    :: alive(n) && failed == token && mine[n] != token ->
      if
      :: waiter == token -> waiter = 0; place = NONE
      :: else
      fi;
      if
      :: phase == given && by == n && by_era == era[n] && gift > begun[n] -> give(n); doubt[n] = true
      :: else
      fi
    :: else
    fi
  };
gone:
  atomic { own = 0; is_late = false; f = 0 }
}

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

/* loop.ts: the pass of a node. The sync and the timeout of mailboxes.ts and attempts.ts. */
proctype Node(byte n) {
  mtype:fate f; bool is_late; byte own; byte news; byte upto; byte was; bool restarts; byte back; byte asked;
  do
  /* pass.lua: reads the messages, and recovers the attempts of incarnations that were declared dead. */
  :: atomic { alive(n) && !over && !(doubt[n] && attaching[n] == 0) ->
      send(f); news = 0; restarts = false; own = 0; upto = heard[n]; was = heard[n];
      if
      :: came(f) ->
        restarts = declared[n];
#ifdef NUMBERED
        if
        :: told[n] > heard[n] -> news = letter[n]; upto = told[n]
        :: else
        fi;
#else
        /* A broken chain of ids shows that the store lost a message to this node. */
        if
        :: told[n] < heard[n] -> restarts = true
        :: told[n] > heard[n] -> news = letter[n]; upto = told[n]
        :: else
        fi;
#endif
        /* A second look at an expired lease declares the node dead, which has crashed or was silent for long. */
        if
        :: dead[1 - n] && !declared[1 - n] -> declared[1 - n] = true
        :: alive(1 - n) && !declared[1 - n] && faults < FAULTS -> faults++; silences++; declared[1 - n] = true
#ifdef ONE_LOOK
        :: alive(1 - n) && !declared[1 - n] -> declared[1 - n] = true
#endif
        :: else
        fi;
        if
        :: declared[1 - n] && place == 1 - n -> waiter = 0; place = NONE
        :: else
        fi;
        /* A pass sends attempts by message, also to its own node, because its reply may be lost. */
        if
        :: (phase == given || phase == pause) && by != NONE && (by_era != era[by] || declared[by]) ->
          assert(dead[by] || silences > 0 || by_era != era[by]);
          give(NONE)
        :: else
        fi
      :: else
      fi
    };
    atomic {
      if
      :: dead[n] -> break
      :: alive(n) && answered(f) ->
        if
        :: restarts ->
#ifndef NO_RESTART
          /* Restarts under a new incarnation: its attempts are recovered, and its waiter attaches again. */
          era[n]++; declared[n] = false; held[n] = 0; heard[n] = told[n]; doubt[n] = true
#else
          declared[n] = false
#endif
        :: else ->
          heard[n] = upto;
          if
          :: news > begun[n] && mine[n] != 0 -> take(n, news)
          :: news > begun[n] && mine[n] == 0 && attaching[n] != 0 -> heard[n] = was
          :: news > begun[n] && mine[n] == 0 && attaching[n] == 0 -> doubt[n] = true
          :: else
          fi
        fi
      :: alive(n) && !answered(f) -> unsure(n)
      fi;
      news = 0; restarts = false; f = 0; upto = 0; was = 0
    }
  /* mailboxes.ts: sync(). Asks which attempts the mailbox of its waiter has. Without a waiter, gives them back. */
  :: atomic { alive(n) && !over && doubt[n] && attaching[n] == 0 ->
      send(f); news = 0; is_late = false; own = 0; doubt[n] = false; asked = mine[n];
      if
      :: came(f) && mine[n] != 0 ->
        attach_step(n, mine[n]);
        if
        :: phase == given && by == n && by_era == era[n] && !is_late -> news = gift
        /* The message about the replacement lists the attempts of the former waiter. */
        :: phase == given && by == n && by_era == era[n] && is_late && gift > begun[n] -> give(n)
        :: else
        fi
      :: came(f) && mine[n] == 0 && phase == given && by == n && by_era == era[n] && gift > begun[n] ->
        if
        :: place == n -> waiter = 0; place = NONE
        :: else
        fi;
        give(n)
      :: else
      fi
    };
    atomic {
      if
      :: dead[n] -> break
      :: alive(n) && answered(f) ->
        if
        :: is_late && mine[n] == asked -> mine[n] = 0
        :: !is_late && mine[n] != 0 -> take(n, news)
        :: else
        fi
      :: alive(n) && !answered(f) -> doubt[n] = true
      fi;
      news = 0; is_late = false; own = 0; f = 0; asked = 0
    }
  /* clients.lua: conclude() and retry() start the next attempt after a timeout. */
  :: atomic { alive(n) && held[n] != 0 && !over ->
      send(f); own = 0; back = held[n];
      if
      :: came(f) && phase == given && by == n && by_era == era[n] && gift == held[n] -> phase = pause
      :: else
      fi;
      if
      :: came(f) && phase == pause && by == n && by_era == era[n] && gift == held[n] -> give(n)
      :: else
      fi
    };
    atomic {
      if
      :: dead[n] -> break
      :: alive(n) && answered(f) ->
        if
        :: held[n] == back -> held[n] = 0
        :: else
        fi;
        if
        :: f == arrives && own != 0 -> take(n, own)
        :: f == twice -> unsure(n)
        :: else
        fi
      :: alive(n) && !answered(f) -> unsure(n)
      fi;
      own = 0; f = 0; back = 0
    }
  :: atomic { dead[n] || over -> break }
  od
}

/* ends.ts: acknowledge() and settle(), called by an instance that may have been superseded. */
proctype Word(byte who) {
  byte asked;
  (instance >= who && delivered) -> asked = instance;
  atomic {
    if
#ifndef NO_FENCE
    :: asked == who &&
#else
    ::
#endif
#ifndef NO_END
       phase != ended &&
#endif
       phase != absent ->
      assert(asked == who);
      finish()
    :: else
    fi
  }
}

proctype Deadline() {
  atomic {
    if
    :: phase != absent && phase != ended -> finish()
    :: else
    fi
  }
}

proctype Fate() {
  if
  :: atomic { crashes < CRASHES -> crashes++; dead[0] = true; mine[0] = 0; held[0] = 0 }
  :: atomic { crashes < CRASHES -> crashes++; dead[1] = true; mine[1] = 0; held[1] = 0 }
#ifdef LOSS
  /* A failover loses the last message to a node, which that node has read. */
  :: atomic { faults < FAULTS && told[0] > 0 && told[0] == heard[0] && phase == absent -> faults++; told[0] = 0 }
#endif
  :: skip
  fi
}

init {
  atomic {
    /* Each node has received a message before. */
    told[0] = 1; heard[0] = 1; told[1] = 1; heard[1] = 1;
    run Node(0); run Node(1); run Fate();
#ifdef WORDS
    run Word(1); run Word(2); run Deadline();
#endif
    if
    :: run Dispatch(0)
    :: run Dispatch(1)
    fi
  }
}

#ifndef WORDS
/* An admitted command does not wait indefinitely: the client gets it, or it ends. */
ltl not_stranded { [] ((phase == boxed || phase == given) -> <> (delivered || phase == ended)) }
#endif
