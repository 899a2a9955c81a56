/*
 * The page-fault retry protocol, for Spin: docs/model.md says which process stands for which functions of mm/, what is checked, and
 * how to run it (tests/model/run.py).
 *
 * One address, one file page, NP frames, NV VMAs. Every shared access that no lock guards is a step of its own.
 *
 *   -DVMA_LOCK          vm.fault_lock=vma, else mmap
 *   -DRETRY=ONCE        vm.fault_retry: HOLD, ONCE, MANY, RECHECK
 *   -DPIN=1 -DSUBMIT=1  vm.fault_pin, vm.fault_drop
 *   -DNF=2 -DNW=1 -DNT=1 -DNR=1   fault threads; rounds of the writer, truncations, reclaim passes (99: for ever)
 *   -DNACC=1            faults of each thread
 *   -DWITH_EIO          reads may fail
 *   -DWITH_WRITE        somebody write()s to the page from user memory
 *   -DBUG_...           one rule of the protocol left out: see BUGS in tests/model/run.py
 */
#define HOLD    0
#define ONCE    1
#define MANY    2
#define RECHECK 3

#ifndef RETRY
#define RETRY ONCE
#endif
#ifndef PIN
#define PIN 1
#endif
#ifndef SUBMIT
#define SUBMIT 1
#endif
#ifndef NF
#define NF 2
#endif
#ifndef NACC
#define NACC 1
#endif
#ifndef NW
#define NW 1
#endif
#ifndef NT
#define NT 1
#endif
#ifndef NR
#define NR 1
#endif
#ifdef WITH_WRITE
#define NBW 1
#else
#define NBW 0
#endif

#define NP    3
#define NV    2
#define NONE  7
#define NPROC (NF + 5)

/* ---- Shared state ---- */

byte rd = 0; bool wr = 0; byte head = 0, tail = 0;   /* mmap_lock: tickets, so first come first served */
byte changes = 0;                                     /* mm->change_count; only recheck looks at it */
byte tree = 0;                                       /* the VMA at the address */
bool vlive[NV], detached[NV], is_file[NV];
byte vrd[NV]; bool vwr[NV];                          /* vma->lock; vwr: a writer has it or waits for it */
byte looking = 0;                                    /* between the lookup and the lock: no grace period ends */
bool invalid = 0;                                    /* invalidate_lock, exclusive; what is done under it shared is one step here */
bool size = 1; bit fgen = 0;                         /* the file: one page or none; which blocks it has */
byte cache = NONE;                                   /* the page cache */
byte pte = NONE, pte_vma = NONE;                     /* the entry, and whose it is */
bool alloc[NP], locked[NP], uptodate[NP], incache[NP], io[NP]; bit pgen[NP];
byte ref[NP], mapcount[NP];
byte watchers[NP], wanters[NP];                      /* a page's wait queue: bits by process */
bool woken[NPROC], granted[NPROC];
byte finished = 0;
bool faulting0 = 0, writer_waits = 0;                /* for the LTL formulas */

/* ---- Locks ---- */

#define DOWN_READ  atomic { tk = tail; tail = (tail + 1) % NPROC }; atomic { head == tk && !wr -> rd++; head = (head + 1) % NPROC }
#define UP_READ    d_step { assert(rd > 0); rd-- }
#define DOWN_WRITE atomic { tk = tail; tail = (tail + 1) % NPROC }; atomic { head == tk && rd == 0 && !wr -> wr = 1 }
#define UP_WRITE   d_step { wr = 0; head = (head + 1) % NPROC }

#define VMA_DOWN_WRITE(v) d_step { assert(!vwr[v]); vwr[v] = 1 }; (vrd[v] == 0)
#define VMA_UP_WRITE(v)   vwr[v] = 0

/* ---- Pages ---- */

inline find_page(p) { d_step { p = cache; if :: p != NONE -> assert(alloc[p]); ref[p]++ :: else fi } }

inline free_if_last(p) {
    if :: ref[p] == 0 -> assert(!incache[p] && mapcount[p] == 0 && !locked[p] && !io[p]);
          alloc[p] = 0; uptodate[p] = 0; pgen[p] = 0
       :: else fi
}
inline put_page(p) { d_step { assert(alloc[p] && ref[p] > 0); ref[p]--; free_if_last(p) } }

/* Under the queue's lock: wakes all who watch, hands the lock to the first who wants it. */
inline unlock_page(p) {
    d_step {
        assert(locked[p]);
        i_ = 0;
        do :: i_ < NPROC -> if :: watchers[p] & (1 << i_) -> woken[i_] = 1 :: else fi; i_++
           :: else -> break od;
        watchers[p] = 0; i_ = 0;
        do :: i_ < NPROC -> if :: wanters[p] & (1 << i_) -> granted[i_] = 1; wanters[p] = wanters[p] & (255 ^ (1 << i_)); break
                               :: else fi; i_++
           :: else -> locked[p] = 0; break od;
        i_ = 0
    }
}
/* One wake-up is enough, even if the page is locked again by then. */
/* P5: no lock across I/O. A page is looked at with a reference only. */
#define MAY_SLEEP assert(alloc[p] && (let || !io[p] || RETRY == HOLD || (RETRY == ONCE && tried)))

inline wait_page(p) {
#ifdef BUG_LOST_WAKEUP
    if :: locked[p] -> d_step { watchers[p] = watchers[p] | (1 << me); woken[me] = 0 }; (woken[me])
       :: else fi
#else
    d_step { watchers[p] = watchers[p] | (1 << me); woken[me] = 0 };
    if :: atomic { locked[p] -> MAY_SLEEP }; (woken[me])
       :: !locked[p] -> d_step { assert(alloc[p]); watchers[p] = watchers[p] & (255 ^ (1 << me)) }
       :: woken[me] -> skip
    fi;
    woken[me] = 0
#endif
}
inline lock_page(p) {
    if :: atomic { !locked[p] -> locked[p] = 1 }
       :: atomic { locked[p] -> wanters[p] = wanters[p] | (1 << me); granted[me] = 0 }; atomic { granted[me] -> granted[me] = 0 }
    fi
}
/* pt_lock held inside. only NONE: whatever is there. */
inline zap(only) {
    d_step {
        if :: pte != NONE && (only == NONE || pte == only) ->
              x_ = pte; pte = NONE; pte_vma = NONE;
              assert(alloc[x_] && mapcount[x_] > 0 && ref[x_] > 0);
              mapcount[x_]--; ref[x_]--;
              free_if_last(x_)
           :: else fi;
        x_ = 0
    }
}
inline uncache(p) { d_step { assert(cache == p && incache[p]); cache = NONE; incache[p] = 0; ref[p]--; assert(ref[p] > 0) } }

/* ---- A fault ---- */

#ifdef VMA_LOCK
#define UNLOCK_VMA     d_step { assert(vrd[v] > 0); vrd[v]-- }
#define LOCK_KNOWN_VMA vrd[v]++
#else
#define UNLOCK_VMA     UP_READ
#define LOCK_KNOWN_VMA DOWN_READ
#endif

#if RETRY == HOLD
#define MAY_LET_GO false
#elif RETRY == ONCE
#define MAY_LET_GO (!tried)
#else
#define MAY_LET_GO true
#endif

/* v NONE: no mapping, and nothing is held. */
inline lock_vma() {
#ifdef VMA_LOCK
    d_step { v = tree; looking++ };
    if :: v != NONE ->
          assert(vlive[v]);
          if :: atomic { !vwr[v] -> vrd[v]++ };
#ifndef BUG_NO_DETACHED_CHECK
                if :: detached[v] -> UNLOCK_VMA; v = NONE :: else fi
#endif
             :: atomic { vwr[v] -> v = NONE }
          fi
       :: else fi;
    looking--;
    if :: v == NONE ->
          DOWN_READ; v = tree;
          if :: v != NONE -> d_step { assert(!vwr[v]); vrd[v]++ } :: else fi;
          UP_READ
       :: else fi
#else
    DOWN_READ; v = tree;
    if :: v == NONE -> UP_READ :: else fi
#endif
}

inline let_go() { d_step { let = 1; seen = changes; dead = v }; UNLOCK_VMA; v = NONE }

/* The awaited page is dropped, or kept until it is looked up again. */
inline keep_or_put(p) {
#ifdef BUG_NOT_KEPT
    put_page(p)
#else
    if :: PIN || !let -> assert(pinned == NONE); pinned = p
       :: else -> put_page(p)
    fi
#endif
}
inline unpin() { if :: pinned != NONE -> put_page(pinned); pinned = NONE :: else fi }

/*
 * invalidate_lock shared, so no truncation is under way. Puts a page of ours there, locked, and asks the disk, unless somebody
 * else's is there by now, or the file has shrunk. The read owns the lock.
 */
inline read_in() {
    atomic {
        !invalid ->
#ifndef BUG_NO_SIZE_RECHECK
        if :: size == 0 || cache != NONE -> skip :: else ->
#else
        if :: cache != NONE -> skip :: else ->
#endif
            if :: !alloc[0] -> p = 0 :: else -> if :: !alloc[1] -> p = 1 :: else -> assert(!alloc[2]); p = 2 fi fi;
            alloc[p] = 1; ref[p] = 1; locked[p] = 1; uptodate[p] = 0;
            cache = p; incache[p] = 1; pgen[p] = fgen; io[p] = 1;
#ifndef BUG_ASKED_NOT_KEPT
            ref[p]++                                                       /* ours */
#else
            p = NONE
#endif
        fi
    }
}

proctype fault(byte me) {
    byte v, p, tk, i_, n, counted, pinned = NONE, dead; bool tried, let, reread, kept; byte seen;
    n = 0;
    do
    :: n < NACC -> n++;
        d_step { tried = 0; counted = 0; reread = 0; if :: me == 0 -> faulting0 = 1 :: else fi };
again:
#ifdef BUG_COUNT_EACH_TRY
        counted++;
#endif
        let = 0;
#ifdef BUG_NO_RELOOKUP
        if :: tried -> v = dead; LOCK_KNOWN_VMA :: else -> lock_vma() fi;
#else
        lock_vma();
#endif
        atomic { if :: v == NONE -> unpin(); goto done :: else fi };       /* SIGSEGV */
look:
        atomic {
            assert(v != NONE && vlive[v]);                                 /* P1: no VMA that is gone */
            if :: !is_file[v] -> assert(pte == NONE); unpin(); UNLOCK_VMA; goto done
               :: is_file[v] && pte != NONE -> assert(pte_vma == v); unpin(); UNLOCK_VMA; goto done
               :: else fi
        };
        atomic { if :: size == 0 -> unpin(); UNLOCK_VMA; goto done :: else fi };   /* SIGBUS */
        atomic { find_page(p); unpin() };
        if :: p == NONE ->
              if :: SUBMIT && MAY_LET_GO -> let_go() :: else fi;
              read_in();
              if :: p == NONE -> find_page(p) :: else fi;
              if :: p == NONE -> if :: let -> tried = 1; goto again :: else -> goto look fi :: else fi;
              goto wait
           :: else fi;
        if :: atomic { !locked[p] -> locked[p] = 1 }
           :: atomic { locked[p] && uptodate[p] -> skip }; lock_page(p)
           :: atomic { locked[p] && !uptodate[p] -> skip }; goto wait
        fi;
        atomic {
#ifndef BUG_NO_OWNER_CHECK
            if :: !incache[p] -> unlock_page(p); put_page(p); goto look :: else fi;
#endif
            if :: size == 0 -> unlock_page(p); put_page(p); goto look :: else fi
        };
        atomic {
            if :: !uptodate[p] && reread -> unlock_page(p); put_page(p); UNLOCK_VMA; goto done   /* SIGBUS */
               :: !uptodate[p] && !reread ->                               /* its read failed: once more, by itself */
                  reread = 1;
                  if :: SUBMIT && MAY_LET_GO -> let_go() :: else fi;
                  io[p] = 1;
                  goto wait
               :: else fi
        };
        d_step {                                                           /* pt_lock */
            assert(vlive[v] && !detached[v] && is_file[v]);                /* P1 */
            assert(alloc[p] && locked[p] && uptodate[p]);                  /* P2: never half read */
            assert(incache[p] && cache == p && pgen[p] == fgen);           /* P2: never a truncated or stale page */
            if :: pte == NONE -> pte = p; pte_vma = v; mapcount[p]++; ref[p]++ :: else fi
        };
        atomic { unlock_page(p); put_page(p) }; UNLOCK_VMA; goto done;
wait:
        if :: !let -> if :: locked[p] -> if :: MAY_LET_GO -> let_go() :: else fi
                         :: !locked[p] ->
#ifndef BUG_WAIT_ANYWAY
                            pinned = p; goto look                          /* there, or failed, already */
#else
                            skip
#endif
                      fi
           :: else fi;
#ifdef BUG_NO_PIN
        put_page(p); wait_page(p);
#else
        wait_page(p); keep_or_put(p);
#endif
        if :: !let -> goto look :: else fi;
        tried = 1;
#if RETRY == RECHECK && !defined(VMA_LOCK)
        DOWN_READ;
#ifdef BUG_NO_CHANGE_COUNT
        v = dead; let = 0; goto look;
#else
        if :: seen == changes -> v = dead; let = 0; goto look
           :: else -> UP_READ fi;
#endif
#endif
        goto again;
done:
#ifndef BUG_COUNT_EACH_TRY
        counted++;
#endif
        assert(counted == 1);                                              /* P4: one access, one count */
        d_step { v = 0; p = 0; tk = 0; tried = 0; let = 0; reread = 0; seen = 0; dead = 0; counted = 0;
                 if :: me == 0 -> faulting0 = 0 :: else fi }
    :: else -> break
    od;
    finished++
}

/* ---- Who changes the area: unmaps it, puts another there, maps something where nothing is ---- */

/* The old VMA leaves: whoever has its lock finishes first. */
inline detach(v) { VMA_DOWN_WRITE(v); detached[v] = 1; VMA_UP_WRITE(v) }

/* Once no lookup is under way that may have found it. */
inline bury(v) { atomic { looking == 0 -> assert(vrd[v] == 0); vlive[v] = 0; detached[v] = 0 } }

proctype writer(byte me) {
    byte old, new, tk, x_, n; n = 0;
    do
    :: n < NW -> if :: NW != 99 -> n++ :: else fi;
        writer_waits = 1;
        DOWN_WRITE;
        writer_waits = 0;
        old = tree; new = NONE;
        if :: old != NONE
           :: old == NONE || old == 0 -> new = 1
           :: old == 1 -> new = 0
        fi;
        if :: new != NONE ->
              d_step { assert(!vlive[new]); vlive[new] = 1 };
              if :: is_file[new] = 1 :: is_file[new] = 0 fi;
#ifndef BUG_NEW_AREA_OPEN
              VMA_DOWN_WRITE(new)                                          /* held until the entries are what it says */
#endif
           :: else fi;
#ifdef BUG_ZAP_BEFORE_DETACH
        zap(NONE);
#endif
        d_step { if :: RETRY == RECHECK -> changes++ :: else fi; tree = new };
        if :: old != NONE ->
              detach(old);
#ifndef BUG_ZAP_BEFORE_DETACH
              zap(NONE);
#endif
              assert(pte == NONE || pte_vma != old)                        /* P3: nothing of it is mapped any more */
           :: else fi;
#ifndef BUG_NEW_AREA_OPEN
        if :: new != NONE -> VMA_UP_WRITE(new) :: else fi;
#endif
        UP_WRITE;
        if :: old != NONE -> bury(old) :: else fi;
        d_step { old = 0; new = 0; tk = 0 }
    :: else -> break
    od;
    finished++
}

/* ---- Truncate, and extend ---- */

proctype truncate(byte me) {
    byte p, x_, i_, n; n = 0;
    do
    :: n < NT -> if :: NT != 99 -> n++ :: else fi;
        atomic { !invalid -> invalid = 1; size = 0 };
#ifdef BUG_UNMAP_BEFORE_LOCK
        zap(NONE);
#endif
        find_page(p);
        if :: p != NONE ->
              lock_page(p);
              atomic {
                  if :: incache[p] ->
#ifndef BUG_UNMAP_BEFORE_LOCK
                        zap(p);
#endif
                        uncache(p)
                     :: else fi;
                  unlock_page(p); put_page(p)
              }
           :: else fi;
        atomic { fgen = 1 - fgen; invalid = 0 };                           /* its blocks are somebody else's now */
        atomic { !invalid -> assert(pte == NONE && cache == NONE); size = 1 };   /* P2: nothing past the end */
        d_step { p = 0; i_ = 0; x_ = 0 }
    :: else -> break
    od;
    finished++
}

/* ---- Reclaim ---- */

proctype reclaim(byte me) {
    byte p, x_, i_, n; n = 0;
    do
    :: n < NR -> if :: NR != 99 -> n++ :: else fi;
        find_page(p);
        if :: p != NONE ->
              if :: atomic { !locked[p] -> locked[p] = 1 };
                    if :: incache[p] && uptodate[p] ->
                          zap(p);
#ifdef BUG_RECLAIM_NO_FREEZE
                          d_step { cache = NONE; incache[p] = 0; locked[p] = 0; ref[p] = 0; alloc[p] = 0; uptodate[p] = 0 };
                          goto next
#else
                          d_step { if :: ref[p] == 2 -> cache = NONE; incache[p] = 0; ref[p] = 1 :: else fi }
#endif
                       :: else fi;
                    unlock_page(p); put_page(p)
                 :: atomic { locked[p] -> skip }; put_page(p)
              fi
           :: else fi;
next:   skip;
        d_step { p = 0; i_ = 0; x_ = 0 }
    :: else -> break
    od;
    finished++
}

/* ---- write(2) to the page, its bytes in user memory that may fault ---- */

#ifdef WITH_WRITE
proctype bufwrite(byte me) {
    byte p, v, tk, i_;
    find_page(p);
    if :: p != NONE ->
          lock_page(p);
#ifdef BUG_COPY_UNDER_PAGE_LOCK
          lock_vma();
          if :: v != NONE -> UNLOCK_VMA :: else fi;
#endif
          unlock_page(p); put_page(p)
       :: else fi;
    finished++
}
#endif

/* ---- The disk, and what must hold when all is over ---- */

proctype disk(byte me) {
    byte p, i_;
end: do
    :: atomic { io[0] -> p = 0 }; goto deliver
    :: atomic { io[1] -> p = 1 }; goto deliver
    :: atomic { io[2] -> p = 2 }; goto deliver
    :: atomic { finished == NF + 3 + NBW && !io[0] && !io[1] && !io[2] ->
        i_ = 0;                                                            /* P6: nothing is locked, nothing leaks */
        do :: i_ < NP ->
              assert(!locked[i_] && ref[i_] == incache[i_] + mapcount[i_] && (alloc[i_] == (ref[i_] > 0)));
              assert(mapcount[i_] == (pte == i_) && incache[i_] == (cache == i_)); i_++
           :: else -> break od;
        assert(rd == 0 && !wr && !invalid && looking == 0);
        assert(vrd[0] == 0 && vrd[1] == 0 && !vwr[0] && !vwr[1]) }; break
    od;
    goto out;
deliver:
    if :: uptodate[p] = 1
#ifdef WITH_EIO
       :: skip
#endif
    fi;
    d_step { io[p] = 0 }; unlock_page(p); p = 0; goto end;
out: skip
}

init {
    atomic {
        byte k = 0;
        vlive[0] = 1; is_file[0] = 1;
        do :: k < NF -> run fault(k); k++ :: else -> break od;
        run writer(NF); run truncate(NF + 1); run reclaim(NF + 2); run disk(NF + 3);
#ifdef WITH_WRITE
        run bufwrite(NF + 4)
#endif
    }
}

#ifdef LIVE_FAULT
ltl fault_ends { [] (faulting0 -> <> !faulting0) }
#endif
#ifdef LIVE_WRITER
ltl writer_gets_lock { [] (writer_waits -> <> !writer_waits) }
#endif
