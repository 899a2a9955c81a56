-- What a database does with files and memory: journals, a write-ahead log with its shared index, maps
-- that grow (mremap), temporary tables, sorting, floating point. The output is the same everywhere.
.bail on
pragma journal_mode = delete;
pragma mmap_size = 4194304;
create table numbers(n integer primary key, square integer, root real, name text);
begin;
with recursive count(n) as (select 1 union all select n + 1 from count where n < 3000)
insert into numbers select n, n * n, sqrt(n), printf('%08x', n * 2654435761 % 4294967296) from count;
commit;
select count(*), sum(square), round(sum(root), 6), min(name), max(name) from numbers;
begin;
delete from numbers where n % 2 = 0;
select count(*) from numbers;
rollback;
select count(*) from numbers;
create index by_name on numbers(name);
select n, name from numbers where name between '80000000' and '80200000' order by name;
pragma journal_mode = wal;
create table texts(id integer primary key, body blob);
with recursive count(n) as (select 1 union all select n + 1 from count where n < 200)
insert into texts select n, zeroblob(n * 37) || printf('%d', n) from count;
select sum(length(body)), hex(substr(body, -3)) from texts where id % 50 = 0 group by id;
pragma wal_checkpoint(truncate);
pragma journal_mode = delete;
create temp table pairs as select a.n as a, b.n as b from numbers a join numbers b on b.n = a.square where a.n <= 50;
select count(*), sum(a * b) from pairs;
select group_concat(d, ' ') from (select distinct substr(name, 1, 1) as d from numbers order by d desc);
vacuum;
pragma integrity_check;
pragma page_count;
drop table texts;
vacuum;
pragma page_count;
.schema
select * from no_such_table;
